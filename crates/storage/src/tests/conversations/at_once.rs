//! Two replicas at once on the same conversations.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::*;

/// Two replicas, each with connections of its own.
struct Replicas {
    databases: [Arc<Postgres>; 2],
    stores: [SqlConversationStore; 2],
}

impl Replicas {
    async fn start() -> Replicas {
        let url = cluster().database();
        let databases = [connect(&url).await, connect(&url).await];
        let stores = databases.clone().map(|database| SqlConversationStore::new(database));
        Replicas { databases, stores }
    }

    /// They take turns.
    fn store(&self, turn: usize) -> &SqlConversationStore {
        &self.stores[turn % 2]
    }

    async fn check(&self) {
        check(&self.stores[0], counted_in_postgres(&self.databases[0]).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_requests_at_once_one_has_the_claim() {
    let replicas = Replicas::start().await;
    let made = conversation("a", 1);
    replicas.store(0).create(&made, &[], ROOM).await.unwrap();
    for round in 0..20 {
        // Each comes when the claims of the last round have run out.
        let (now, until) = (Timestamp(round * 10), Timestamp(round * 10 + 10));
        let claims = (0..24).map(async |turn| {
            let by = RequestId::new();
            let claimed = replicas.store(turn).claim(&made.account, made.id, by, EVER, now, until).await;
            (by, claimed.unwrap())
        });
        let claims = join_all(claims).await;
        let has = |claim: &&(RequestId, ClaimResult)| claim.1 == ClaimResult::Granted(made.clone());
        let winners: Vec<RequestId> = claims.iter().filter(has).map(|claim| claim.0).collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(claims.iter().filter(|claim| claim.1 == ClaimResult::Busy).count(), 23);
        let prolonged = replicas.store(1).renew(&made.account, made.id, winners[0], until).await;
        assert!(prolonged.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_answers_to_one_claim_one_is_kept() {
    let replicas = Replicas::start().await;
    let (made, by) = (conversation("a", 1), RequestId::new());
    replicas.store(0).create(&made, &[], ROOM).await.unwrap();
    replicas.store(0).claim(&made.account, made.id, by, EVER, Timestamp(1), Timestamp(9)).await.unwrap();
    let answers = (0..16).map(async |turn| {
        let answer = ConversationAppend { claimant: Some(by), ..more(&made, vec![item("i1")], 2) };
        replicas.store(turn).append(&answer, EVER, ROOM).await.unwrap()
    });
    let answers = join_all(answers).await;
    assert_eq!(answers.iter().filter(|change| **change == ConversationWriteResult::Done).count(), 1);
    assert_eq!(answers.iter().filter(|change| **change == ConversationWriteResult::Busy).count(), 15);
    assert_eq!(names(replicas.store(1), &made).await, ["i1"]);
    replicas.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_put_in_at_once_is_there_once() {
    let replicas = Replicas::start().await;
    let made = conversation("a", 1);
    replicas.store(0).create(&made, &[item("first")], ROOM).await.unwrap();
    let mut expected = BTreeSet::from(["first".to_owned()]);
    for round in 0..5 {
        let ids = |turn: usize| (0..turn % 4).map(move |at| format!("{round}/{turn}/{at}"));
        expected.extend((0..24).flat_map(ids));
        join_all((0..24).map(async |turn| {
            let new = more(&made, ids(turn).map(|id| item(&id)).collect(), 2);
            assert_eq!(
                replicas.store(turn).append(&new, EVER, ROOM).await.unwrap(),
                ConversationWriteResult::Done
            );
        }))
        .await;
    }
    let there = names(replicas.store(1), &made).await;
    assert_eq!(there.len(), expected.len());
    assert_eq!(BTreeSet::from_iter(there), expected);
    replicas.check().await;
}

/// The last writer enforces the bound, and no item ever exceeds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_many_lengthen_at_once_keeps_to_its_bound() {
    let replicas = Replicas::start().await;
    let (made, one) = (conversation("a", 1), item("i10"));
    replicas.store(0).create(&made, &[], ROOM).await.unwrap();
    let bounds =
        ConversationLimits { conversation: u64::try_from(made.size() + 10 * one.size()).unwrap(), ..ROOM };
    let put = (10..40).map(async |turn| {
        let new = more(&made, vec![item(&format!("i{turn}"))], 2);
        replicas.store(turn).append(&new, EVER, bounds).await.unwrap()
    });
    let put = join_all(put).await;
    assert_eq!(put.iter().filter(|change| **change == ConversationWriteResult::Done).count(), 10);
    assert_eq!(put.iter().filter(|change| **change == ConversationWriteResult::Full).count(), 20);
    assert_eq!(names(replicas.store(1), &made).await.len(), 10);
    replicas.check().await;
}

/// Each makes room for itself among the others, who do the same; old ones are purged meanwhile. Nobody waits in a circle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_that_are_full_keep_to_their_bound_and_nobody_fails() {
    let replicas = Replicas::start().await;
    let size = u64::try_from(conversation("a", 1).size() + item("0/0").size()).unwrap();
    let bounds = ConversationLimits { account: 12 * size, ..ROOM };
    for round in 0..20 {
        join_all((0..16).map(async |turn| {
            let (store, at) = (replicas.store(turn), i64::try_from(100 * round + turn).unwrap());
            let made = conversation(["a", "b", "c"][turn % 3], at);
            assert_eq!(
                store.create(&made, &[item(&format!("{round}/{turn}"))], bounds).await.unwrap(),
                ConversationWriteResult::Done
            );
            let grown = store.append(&more(&made, vec![item("i2")], at + 1), EVER, bounds).await.unwrap();
            assert!(
                matches!(grown, ConversationWriteResult::Done | ConversationWriteResult::Unknown),
                "unless another made room of it"
            );
            match turn % 4 {
                0 => drop(store.remove(&made.account, made.id, "i2", EVER, Timestamp(at)).await.unwrap()),
                1 => drop(
                    store.set_metadata(&made.account, made.id, "{ }", EVER, Timestamp(at)).await.unwrap(),
                ),
                2 => drop(store.delete(&made.account, made.id).await.unwrap()),
                _ => drop(store.purge(Timestamp(at - 20), 8).await.unwrap()),
            }
        }))
        .await;
    }
    for account in ["a", "b", "c"] {
        replicas.store(0).create(&conversation(account, 9_999), &[], bounds).await.unwrap();
    }
    let counted = counted_in_postgres(&replicas.databases[0]).await;
    let most = i64::try_from(bounds.account).unwrap();
    assert!(counted.accounts.values().all(|bytes| *bytes <= most), "{:?}", counted.accounts);
    replicas.check().await;
}

/// Of several accounts in one statement: it counts them in one order, whatever the order of their ages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purges_at_once_do_not_wait_for_one_another_in_a_circle() {
    let replicas = Replicas::start().await;
    for round in 0..30 {
        for (at, account) in ["a", "b", "b", "a", "a", "b", "b", "a"].into_iter().enumerate() {
            let made = conversation(account, i64::try_from(at).unwrap());
            replicas.store(at).create(&made, &[item("i1")], ROOM).await.unwrap();
        }
        let purged = (0..8).map(async |turn| replicas.store(turn).purge(Timestamp(9), 2).await.unwrap());
        let mut purged: u64 = join_all(purged).await.into_iter().sum();
        // What another had in hand was left to it, and who came late found nothing.
        while purged < 8 {
            let more = replicas.store(0).purge(Timestamp(9), 8).await.unwrap();
            assert!(more > 0, "round {round}");
            purged += more;
        }
    }
    replicas.check().await;
}
