//! The conformance tests that every response store must pass.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::slice;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{ResponseStore, StoredResponse};

const EVER: Timestamp = Timestamp(i64::MIN);
const ROOM: u64 = 1 << 30;

/// Runs the whole suite on an empty store.
pub async fn conforms(store: &dyn ResponseStore) {
    what_is_kept_comes_back_to_its_own_account_alone(store).await;
    what_is_deleted_is_gone_and_breaks_the_chain(store).await;
    a_chain_is_read_from_its_end_as_far_as_it_goes(store).await;
    what_is_too_old_counts_no_more_and_goes_oldest_first(store).await;
    what_a_key_stored_goes_alone_and_then_what_the_account_has(store).await;
    an_account_keeps_to_its_bound_and_others_lose_nothing(store).await;
    several_at_once_are_kept_as_one_after_the_other(store).await;
}

fn response(account: &str, at: i64) -> StoredResponse {
    StoredResponse {
        id: RequestId::new(),
        account: AccountId::new(account),
        key: Some(KeyId::of_declared(&AccountId::new(account))),
        at: Timestamp(at),
        previous: None,
        episode: Some("task-42".parse().unwrap()),
        input: r#"[{"type":"message","content":"\u00e9 '; --"}]"#.into(),
        output: "[]".into(),
        body: "{}".into(),
    }
}

async fn keep(store: &dyn ResponseStore, response: &StoredResponse) {
    store.keep(slice::from_ref(response), ROOM).await.unwrap();
}

async fn is_there(store: &dyn ResponseStore, response: &StoredResponse) -> bool {
    store.find(&response.account, response.id, EVER).await.unwrap().is_some()
}

async fn what_is_kept_comes_back_to_its_own_account_alone(store: &dyn ResponseStore) {
    let (first, other) = (response("a", 1), AccountId::new("b"));
    let bare = StoredResponse { key: None, episode: None, previous: Some(first.id), ..response("a", 2) };
    for one in [&first, &bare, &first] {
        keep(store, one).await;
        assert_eq!(store.find(&one.account, one.id, EVER).await.unwrap().as_ref(), Some(one));
        assert_eq!(store.find(&other, one.id, EVER).await.unwrap(), None);
    }
    assert_eq!(store.chain(&other, bare.id, EVER, ROOM).await.unwrap(), None);
    assert!(!store.delete(&other, first.id).await.unwrap());
    assert!(is_there(store, &first).await);
}

async fn what_is_deleted_is_gone_and_breaks_the_chain(store: &dyn ResponseStore) {
    let first = response("deleting", 1);
    let second = StoredResponse { previous: Some(first.id), ..response("deleting", 2) };
    keep(store, &first).await;
    keep(store, &second).await;
    assert!(store.delete(&first.account, first.id).await.unwrap());
    assert!(!store.delete(&first.account, first.id).await.unwrap());
    assert!(!is_there(store, &first).await);
    let chain = store.chain(&second.account, second.id, EVER, ROOM).await.unwrap().unwrap();
    assert_eq!(chain.first(), None);
    assert_eq!(chain.last(), Some(&second));
}

async fn a_chain_is_read_from_its_end_as_far_as_it_goes(store: &dyn ResponseStore) {
    let mut links = vec![response("chain", 1)];
    for at in 2..12 {
        let previous = links.last().map(|last| last.id);
        // A clock may go back.
        links.push(StoredResponse { previous, ..response("chain", 20 - at) });
    }
    for link in &links {
        keep(store, link).await;
    }
    let last = links.last().unwrap();
    let chain = store.chain(&last.account, last.id, EVER, ROOM).await.unwrap().unwrap();
    assert_eq!(chain.first(), links.first());
    let size = u64::try_from(links[0].size()).unwrap();
    links.reverse();
    assert_eq!(chain.responses, links);
    let some = store.chain(&links[0].account, links[0].id, EVER, 3 * size).await.unwrap().unwrap();
    assert_eq!(some.responses, links[..4], "one more than there is room for, so that it shows");
    assert_eq!(some.first(), None);
    let young = store.chain(&links[0].account, links[0].id, Timestamp(9), ROOM).await.unwrap().unwrap();
    assert_eq!(young.responses, links[..10], "the first is too old");
}

async fn what_is_too_old_counts_no_more_and_goes_oldest_first(store: &dyn ResponseStore) {
    while store.purge(Timestamp(1_000), 100).await.unwrap() > 0 {}
    let kept: Vec<_> = [5, 7, 6, 9].map(|at| response("old", at)).into();
    for one in &kept {
        keep(store, one).await;
    }
    assert_eq!(store.find(&kept[0].account, kept[0].id, Timestamp(6)).await.unwrap(), None);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 2);
    let mut there = Vec::new();
    for one in &kept {
        there.push(is_there(store, one).await);
    }
    assert_eq!(there, [false, true, false, true]);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 1);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 0);
}

async fn what_a_key_stored_goes_alone_and_then_what_the_account_has(store: &dyn ResponseStore) {
    let (key, account) = (KeyId::of_declared(&AccountId::new("of a key")), AccountId::new("forgotten"));
    let of_key = StoredResponse { key: Some(key), ..response("forgotten", 1) };
    let of_another = response("forgotten", 2);
    let of_nobody = StoredResponse { key: None, ..response("forgotten", 3) };
    let elsewhere = StoredResponse { key: Some(key), ..response("remembered", 4) };
    for one in [&of_key, &of_another, &of_nobody, &elsewhere] {
        keep(store, one).await;
    }
    assert_eq!(store.delete_of(&account, Some(key)).await.unwrap(), 1);
    assert_eq!(store.delete_of(&account, Some(key)).await.unwrap(), 0);
    assert!(!is_there(store, &of_key).await);
    assert!(is_there(store, &of_another).await && is_there(store, &of_nobody).await);
    assert_eq!(store.delete_of(&account, None).await.unwrap(), 2);
    assert!(is_there(store, &elsewhere).await);
}

async fn an_account_keeps_to_its_bound_and_others_lose_nothing(store: &dyn ResponseStore) {
    let other = response("bystander", 1);
    keep(store, &other).await;
    let kept: Vec<_> = [12, 11, 13, 14].map(|at| response("bounded", at)).into();
    let room = 2 * u64::try_from(kept[0].size()).unwrap();
    for one in &kept {
        store.keep(slice::from_ref(one), room).await.unwrap();
        assert!(is_there(store, one).await, "the new one stays");
    }
    let mut there = Vec::new();
    for one in &kept {
        there.push(is_there(store, one).await);
    }
    assert_eq!(there, [false, false, true, true]);
    assert!(is_there(store, &other).await);
    store.delete(&kept[3].account, kept[3].id).await.unwrap();
    let after = response("bounded", 15);
    store.keep(slice::from_ref(&after), room).await.unwrap();
    assert!(is_there(store, &kept[2]).await, "what is deleted takes no room");
}

async fn several_at_once_are_kept_as_one_after_the_other(store: &dyn ResponseStore) {
    let [first, second, third] = [21, 22, 23].map(|at| response("at once", at));
    let [other, old] = [24, 1].map(|at| response("at once too", at));
    let room = 2 * u64::try_from(first.size()).unwrap();
    keep(store, &old).await;
    keep(store, &first).await;
    let all = [first.clone(), second.clone(), third.clone(), other.clone()];
    store.keep(&all, room).await.unwrap();
    assert!(!is_there(store, &first).await, "beyond what its account may have");
    for one in [&second, &third, &other, &old] {
        assert!(is_there(store, one).await, "{one:?}");
    }
    store.keep(&[], room).await.unwrap();
}

#[tokio::test]
async fn memory_conforms() {
    conforms(&super::MemoryResponses::default()).await;
}
