//! What every store must do: one suite for all of them.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{
    Fingerprint, IdempotencyChange, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, IdempotencyStore,
    StoredAnswer, StoredBody,
};

const EVER: Timestamp = Timestamp(i64::MIN);

/// Runs the whole suite on an empty store.
pub async fn conforms(store: &dyn IdempotencyStore) {
    a_key_is_begun_once_and_by_the_same_request_again(store).await;
    accounts_do_not_share_keys(store).await;
    a_later_key_of_the_same_name_begins_anew(store).await;
    the_first_end_stands_and_comes_back_as_it_was(store).await;
    a_forgotten_key_is_free_and_an_ended_one_is_not_forgotten(store).await;
    what_is_too_old_counts_no_more(store).await;
    changes_take_place_in_their_order(store).await;
    what_runs_is_interrupted_once(store).await;
    the_oldest_are_purged_first(store).await;
}

/// This key of this account.
pub fn idempotency_key(account: &str, key: &str) -> IdempotencyKey {
    let account = AccountId::new(account);
    IdempotencyKey { owner: KeyId::of_declared(&account), account, key: key.into() }
}

/// A request that began then and runs.
pub fn running(begun: i64) -> IdempotencyRecord {
    let (request, fingerprint) = (RequestId::new(), Fingerprint([7; 32]));
    IdempotencyRecord {
        fingerprint,
        request,
        begun: Timestamp(begun),
        deadline: Timestamp(begun + 10),
        end: None,
    }
}

/// A finished answer.
pub fn answer(body: StoredBody) -> StoredAnswer {
    StoredAnswer { status: 200, headers: vec![("x-cost-usd".into(), "0.1".into())], body }
}

fn begin(key: &IdempotencyKey, record: &IdempotencyRecord) -> IdempotencyChange {
    IdempotencyChange::Begin { key: key.clone(), record: record.clone(), expired_before: EVER }
}

fn end(key: &IdempotencyKey, record: &IdempotencyRecord, end: &IdempotencyOutcome) -> IdempotencyChange {
    IdempotencyChange::End { key: key.clone(), request: record.request, end: end.clone() }
}

fn forget(key: &IdempotencyKey, record: &IdempotencyRecord) -> IdempotencyChange {
    IdempotencyChange::Forget { key: key.clone(), request: record.request }
}

async fn write(store: &dyn IdempotencyStore, changes: &[IdempotencyChange], expected: &[bool]) {
    assert_eq!(store.write(changes).await.unwrap(), expected, "{changes:?}");
}

async fn check(store: &dyn IdempotencyStore, key: &IdempotencyKey, expected: Option<IdempotencyRecord>) {
    assert_eq!(store.find(key, EVER).await.unwrap(), expected, "{key:?}");
}

async fn a_key_is_begun_once_and_by_the_same_request_again(store: &dyn IdempotencyStore) {
    let (key, first, second) = (idempotency_key("a", "once"), running(1), running(2));
    check(store, &key, None).await;
    write(store, &[begin(&key, &first), begin(&key, &second)], &[true, false]).await;
    write(store, &[begin(&key, &first)], &[true]).await;
    check(store, &key, Some(first)).await;
}

async fn accounts_do_not_share_keys(store: &dyn IdempotencyStore) {
    let (mine, yours, record) = (idempotency_key("a", "shared"), idempotency_key("b", "shared"), running(1));
    write(store, &[begin(&mine, &record)], &[true]).await;
    check(store, &yours, None).await;
    write(store, &[begin(&yours, &running(1))], &[true]).await;
    check(store, &mine, Some(record)).await;
}

async fn a_later_key_of_the_same_name_begins_anew(store: &dyn IdempotencyStore) {
    let (old, first, second) = (idempotency_key("a", "twice made"), running(1), running(2));
    let new = IdempotencyKey { owner: KeyId::of_declared(&AccountId::new("another")), ..old.clone() };
    let answered = IdempotencyOutcome::Answered(answer(StoredBody::Whole("secret".into())));
    write(store, &[begin(&old, &first), end(&old, &first, &answered)], &[true, true]).await;
    check(store, &new, None).await;
    write(store, &[begin(&new, &second)], &[true]).await;
    check(store, &new, Some(second.clone())).await;
    // What the earlier one's request still has to say changes nothing of it.
    store.write(&[end(&old, &first, &answered), forget(&old, &first)]).await.unwrap();
    check(store, &new, Some(second)).await;
}

async fn the_first_end_stands_and_comes_back_as_it_was(store: &dyn IdempotencyStore) {
    let bodies =
        [StoredBody::Whole(vec![0, 255, b'x'].into()), StoredBody::Whole("".into()), StoredBody::Streamed];
    let answered =
        bodies.into_iter().chain([StoredBody::TooLarge]).map(answer).map(IdempotencyOutcome::Answered);
    for (at, first) in answered.chain([IdempotencyOutcome::Interrupted]).enumerate() {
        let (key, record) = (idempotency_key("ends", &at.to_string()), running(1));
        write(store, &[begin(&key, &record)], &[true]).await;
        let other =
            IdempotencyOutcome::Answered(StoredAnswer { status: 500, ..answer(StoredBody::Streamed) });
        write(store, &[end(&key, &running(1), &other)], &[false]).await;
        write(store, &[end(&key, &record, &first), end(&key, &record, &other)], &[true, false]).await;
        check(store, &key, Some(IdempotencyRecord { end: Some(first), ..record })).await;
    }
}

async fn a_forgotten_key_is_free_and_an_ended_one_is_not_forgotten(store: &dyn IdempotencyStore) {
    let (key, record) = (idempotency_key("a", "forgotten"), running(1));
    write(store, &[begin(&key, &record), forget(&key, &running(1))], &[true, false]).await;
    write(store, &[forget(&key, &record)], &[true]).await;
    check(store, &key, None).await;
    write(store, &[forget(&key, &record), begin(&key, &record)], &[false, true]).await;
    write(
        store,
        &[end(&key, &record, &IdempotencyOutcome::Interrupted), forget(&key, &record)],
        &[true, false],
    )
    .await;
    check(store, &key, Some(IdempotencyRecord { end: Some(IdempotencyOutcome::Interrupted), ..record }))
        .await;
}

async fn what_is_too_old_counts_no_more(store: &dyn IdempotencyStore) {
    let (key, old, new) = (idempotency_key("a", "old"), running(100), running(200));
    write(
        store,
        &[begin(&key, &old), end(&key, &old, &IdempotencyOutcome::Answered(answer(StoredBody::Streamed)))],
        &[true; 2],
    )
    .await;
    assert_eq!(store.find(&key, Timestamp(101)).await.unwrap(), None);
    let again = |expired_before| IdempotencyChange::Begin {
        key: key.clone(),
        record: new.clone(),
        expired_before: Timestamp(expired_before),
    };
    write(store, &[again(100)], &[false]).await;
    write(store, &[again(101)], &[true]).await;
    check(store, &key, Some(new)).await;
}

async fn changes_take_place_in_their_order(store: &dyn IdempotencyStore) {
    let (key, first, second) = (idempotency_key("a", "order"), running(1), running(2));
    let changes = [begin(&key, &first), forget(&key, &first), begin(&key, &second), begin(&key, &first)];
    write(store, &changes, &[true, true, true, false]).await;
    check(store, &key, Some(second)).await;
}

async fn what_runs_is_interrupted_once(store: &dyn IdempotencyStore) {
    let (key, record) = (idempotency_key("a", "cut off"), running(1));
    write(store, &[begin(&key, &record)], &[true]).await;
    let after = Timestamp(i64::MAX);
    assert!(store.interrupt(after).await.unwrap() >= 1);
    assert_eq!(store.interrupt(after).await.unwrap(), 0);
    check(store, &key, Some(IdempotencyRecord { end: Some(IdempotencyOutcome::Interrupted), ..record }))
        .await;
}

async fn the_oldest_are_purged_first(store: &dyn IdempotencyStore) {
    assert!(store.purge(Timestamp(1_000), 100).await.unwrap() > 0, "what the tests above began");
    let keys: Vec<IdempotencyKey> = (0..4).map(|at| idempotency_key("purged", &at.to_string())).collect();
    let begun: Vec<IdempotencyChange> =
        keys.iter().zip([5, 7, 6, 9]).map(|(key, at)| begin(key, &running(at))).collect();
    write(store, &begun, &[true; 4]).await;
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 2);
    let mut there = Vec::new();
    for key in &keys {
        there.push(store.find(key, EVER).await.unwrap().is_some());
    }
    assert_eq!(there, [false, true, false, true]);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 1);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 0);
}
