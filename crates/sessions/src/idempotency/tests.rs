//! A key as the gateway meets it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::tasks::Tasks;
use stint_types::units::{RequestId, Timestamp};

use super::conformance::{answer, conforms, idempotency_key, running};
use super::{
    BeginError, Fingerprint, Idempotency, IdempotencyChange, IdempotencyKey, IdempotencyLookup,
    IdempotencyOutcome, IdempotencyRecord, IdempotencyStore, IdempotencyStoreError, IdempotencyTicket,
    LookupError, MemoryIdempotencyStore, Settings, StoredBody,
};

const THIS: Fingerprint = Fingerprint([1; 32]);
const THAT: Fingerprint = Fingerprint([2; 32]);
const HOUR: Duration = Duration::from_secs(3600);

struct IdempotencyFixture {
    tasks: Tasks,
    store: Arc<MemoryIdempotencyStore>,
    idempotency: Idempotency,
    now: Timestamp,
}

async fn world(settings: Settings) -> IdempotencyFixture {
    let (tasks, store, now) =
        (Tasks::default(), Arc::new(MemoryIdempotencyStore::default()), Timestamp::now());
    let idempotency = Idempotency::open(&tasks, store.clone(), settings, now).await.unwrap();
    IdempotencyFixture { tasks, store, idempotency, now }
}

impl IdempotencyFixture {
    async fn look(&self, asked: Fingerprint, now: Timestamp) -> IdempotencyLookup {
        self.idempotency.lookup(idempotency_key("a", "key"), asked, now).await.unwrap()
    }

    /// A ticket that was sent, and under which id.
    async fn sent(&self) -> (IdempotencyTicket, RequestId) {
        let IdempotencyLookup::Free(ticket) = self.look(THIS, self.now).await else { panic!("it is free") };
        let id = RequestId::new();
        ticket.begin(id, self.now, self.now + HOUR).await.unwrap();
        ticket.mark_sent();
        (ticket, id)
    }

    /// What is found when everything that was on its way is written.
    async fn check(self, expected: &str) {
        self.tasks.stop();
        assert!(self.tasks.drain(Duration::from_secs(60)).await);
        let found = self.look(THIS, self.now).await;
        assert!(format!("{found:?}").starts_with(expected), "{found:?} is not {expected}");
    }
}

/// Records that are read in more than one step, as a database's are.
#[derive(Default)]
struct SlowStore(MemoryIdempotencyStore);

impl IdempotencyStore for SlowStore {
    fn find<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<IdempotencyRecord>, IdempotencyStoreError>> {
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.0.find(key, since).await
        }
        .boxed()
    }

    fn write<'a>(
        &'a self,
        changes: &'a [IdempotencyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>> {
        self.0.write(changes)
    }

    fn interrupt(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.0.interrupt(now)
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.0.purge(before, most)
    }
}

/// 17.13: while the records of one repeat are read, another is no reason to refuse it.
#[tokio::test(start_paused = true)]
async fn repeats_of_an_answered_request_that_come_at_once_all_get_its_answer() {
    let (tasks, store, now) = (Tasks::default(), Arc::new(SlowStore::default()), Timestamp::now());
    let idempotency = Idempotency::open(&tasks, store, Settings::default(), now).await.unwrap();
    let look = |asked| idempotency.lookup(idempotency_key("a", "key"), asked, now);
    let (first, beside) = tokio::join!(look(THIS), look(THIS));
    assert!(matches!(beside, Ok(IdempotencyLookup::Running)), "it is not answered yet: {beside:?}");
    let Ok(IdempotencyLookup::Free(ticket)) = first else { panic!("it is free") };
    ticket.begin(RequestId::new(), now, now + HOUR).await.unwrap();
    ticket.mark_sent();
    ticket.store_answer(answer(StoredBody::Whole("said".into()))).await;
    let repeats = (0..20).map(|number| look(if number == 0 { THAT } else { THIS }));
    for (number, found) in futures_util::future::join_all(repeats).await.into_iter().enumerate() {
        let found = found.unwrap();
        match number {
            0 => assert!(matches!(found, IdempotencyLookup::Mismatch), "{found:?}"),
            _ => assert!(matches!(found, IdempotencyLookup::Answered(..)), "{number}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn records_in_memory_conform() {
    conforms(&MemoryIdempotencyStore::default()).await;
}

#[tokio::test]
async fn while_it_runs_the_same_waits_and_another_is_refused() {
    let world = world(Settings::default()).await;
    let (ticket, _) = world.sent().await;
    assert!(matches!(world.look(THIS, world.now).await, IdempotencyLookup::Running));
    assert!(matches!(world.look(THAT, world.now).await, IdempotencyLookup::Mismatch));
    drop(ticket);
}

#[tokio::test]
async fn an_answer_is_found_by_the_same_request_until_it_is_too_old() {
    let world = world(Settings::default()).await;
    let (ticket, id) = world.sent().await;
    ticket.store_answer(answer(StoredBody::Whole("said".into()))).await;
    let IdempotencyLookup::Answered(request, said) = world.look(THIS, world.now).await else {
        panic!("an answer")
    };
    assert_eq!((request, said), (id, answer(StoredBody::Whole("said".into()))));
    assert!(matches!(world.look(THAT, world.now).await, IdempotencyLookup::Mismatch));
    let day = 24 * HOUR;
    assert!(matches!(world.look(THIS, world.now + day).await, IdempotencyLookup::Answered(..)));
    assert!(matches!(
        world.look(THIS, world.now + day + Duration::from_millis(1)).await,
        IdempotencyLookup::Free(_)
    ));
}

#[tokio::test]
async fn a_ticket_let_go_is_interrupted_if_it_was_sent_and_free_if_not() {
    let sent = world(Settings::default()).await;
    drop(sent.sent().await);
    sent.check("Interrupted").await;
    let never_begun = world(Settings::default()).await;
    drop(never_begun.look(THIS, never_begun.now).await);
    never_begun.check("Free").await;
    let free = world(Settings::default()).await;
    let (ticket, _) = free.sent().await;
    ticket.mark_uncharged();
    drop(ticket);
    free.check("Free").await;
}

#[tokio::test]
async fn the_last_of_two_holders_ends_it_and_only_one_of_them_can_answer() {
    let world = world(Settings::default()).await;
    let (ticket, _) = world.sent().await;
    let other = ticket.clone();
    ticket.store_answer(answer(StoredBody::Streamed)).await;
    drop(ticket);
    other.store_answer(answer(StoredBody::TooLarge)).await;
    drop(other);
    world.check("Answered").await;
}

#[tokio::test]
async fn an_answer_that_cost_nothing_leaves_the_key_free() {
    let world = world(Settings::default()).await;
    let (ticket, _) = world.sent().await;
    ticket.mark_uncharged();
    ticket.store_answer(answer(StoredBody::Streamed)).await;
    assert!(matches!(world.look(THIS, world.now).await, IdempotencyLookup::Free(_)));
}

#[tokio::test]
async fn an_answer_larger_than_what_is_kept_is_remembered_without_its_body() {
    for (length, expected) in [(4, StoredBody::Whole("xxxx".into())), (5, StoredBody::TooLarge)] {
        let world = world(Settings { answer_max: 4, ..Settings::default() }).await;
        let (ticket, _) = world.sent().await;
        ticket.store_answer(answer(StoredBody::Whole("x".repeat(length).into()))).await;
        let IdempotencyLookup::Answered(_, said) = world.look(THIS, world.now).await else {
            panic!("an answer")
        };
        assert!(said.body == expected, "{length}");
    }
}

#[tokio::test]
async fn another_replica_may_begin_first_and_may_never_come_back() {
    let world = world(Settings::default()).await;
    let IdempotencyLookup::Free(ticket) = world.look(THIS, world.now).await else { panic!("it is free") };
    let record = IdempotencyRecord { fingerprint: THIS, ..running(world.now.0) };
    let theirs = IdempotencyChange::Begin {
        key: idempotency_key("a", "key"),
        record: record.clone(),
        expired_before: Timestamp(0),
    };
    assert_eq!(world.store.write(&[theirs]).await.unwrap(), [true]);
    let begun = ticket.begin(RequestId::new(), world.now, world.now + HOUR).await;
    assert!(matches!(begun, Err(BeginError::Taken)));
    drop(ticket);
    assert!(matches!(world.look(THIS, world.now).await, IdempotencyLookup::Running));
    assert!(
        matches!(world.look(THIS, record.deadline).await, IdempotencyLookup::Interrupted(id) if id == record.request)
    );
}

#[tokio::test]
async fn what_ran_when_the_process_died_is_interrupted_at_the_next_start() {
    let (store, now) = (Arc::new(MemoryIdempotencyStore::default()), Timestamp::now());
    let record = IdempotencyRecord { fingerprint: THIS, ..running(now.0) };
    let key = idempotency_key("a", "key");
    let began = IdempotencyChange::Begin { key: key.clone(), record, expired_before: Timestamp(0) };
    store.write(&[began]).await.unwrap();
    let next = Idempotency::open(&Tasks::default(), store.clone(), Settings::default(), now).await.unwrap();
    assert!(matches!(next.lookup(key.clone(), THIS, now).await.unwrap(), IdempotencyLookup::Interrupted(_)));
    let kept = store.find(&key, now).await.unwrap().unwrap();
    assert_eq!(kept.end, Some(IdempotencyOutcome::Interrupted));
}

#[tokio::test]
async fn no_more_than_so_many_run_at_once() {
    let world = world(Settings { running_max: 1, ..Settings::default() }).await;
    let ticket = world.sent().await;
    let other = || world.idempotency.lookup(idempotency_key("a", "other"), THIS, world.now);
    assert!(matches!(other().await, Err(LookupError::Full)));
    drop(ticket);
    assert!(matches!(other().await, Ok(IdempotencyLookup::Free(_))));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_deleted_in_the_background_a_bounded_number_at_a_time() {
    let world = world(Settings::default()).await;
    let old = world.now.before(25 * HOUR);
    let change = |at: usize| IdempotencyChange::Begin {
        key: idempotency_key("old", &at.to_string()),
        record: running(old.0),
        expired_before: Timestamp(0),
    };
    let changes: Vec<IdempotencyChange> = (0..300).map(change).collect();
    world.store.write(&changes).await.unwrap();
    let left = async || {
        let mut left = 0;
        for change in &changes {
            left += usize::from(world.store.find(change.key(), old).await.unwrap().is_some());
        }
        left
    };
    tokio::time::sleep(Duration::from_millis(60_020)).await;
    assert_eq!(left().await, 300 - 64);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(left().await, 0);
}
