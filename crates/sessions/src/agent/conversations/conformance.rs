//! The conformance tests that every conversation store must pass.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    ClaimResult, ConversationAppend, ConversationLimits, ConversationStore, ConversationWriteResult,
    ItemPage, PositionedItem, StoredConversation, StoredItem,
};

const EVER: Timestamp = Timestamp(i64::MIN);
const ROOM: ConversationLimits = ConversationLimits { conversation: 1 << 20, account: 1 << 30 };

/// Runs the whole suite on an empty store.
pub async fn conforms(store: &dyn ConversationStore) {
    what_is_made_comes_back_to_its_own_account_alone(store).await;
    items_are_read_in_pages_from_either_end(store).await;
    an_item_is_found_and_removed_and_the_others_keep_their_places(store).await;
    one_request_at_a_time_has_a_claim(store).await;
    a_claim_runs_out(store).await;
    an_answer_lengthens_only_what_it_has_a_claim_on(store).await;
    a_conversation_keeps_to_its_bound(store).await;
    what_a_key_stored_goes_alone_and_then_what_the_account_has(store).await;
    an_account_keeps_to_its_bound_and_others_lose_nothing(store).await;
    what_is_too_old_is_not_there_and_goes_oldest_first(store).await;
}

fn conversation(account: &str, at: i64) -> StoredConversation {
    StoredConversation {
        id: ConversationId::new(),
        account: AccountId::new(account),
        key: Some(KeyId::of_declared(&AccountId::new(account))),
        at: Timestamp(at),
        metadata: r#"{"topic":"é '; --"}"#.into(),
        episode: None,
    }
}

fn items(names: &str) -> Vec<StoredItem> {
    let item = |name: &str| StoredItem {
        id: name.into(),
        value: format!(r#"{{"id":"{name}","text":"\u00e9 é"}}"#).into(),
    };
    names.split_whitespace().map(item).collect()
}

fn more(of: &StoredConversation, claimant: Option<RequestId>, names: &str, at: i64) -> ConversationAppend {
    ConversationAppend {
        account: of.account.clone(),
        id: of.id,
        claimant,
        items: items(names),
        episode: None,
        at: Timestamp(at),
    }
}

async fn made(store: &dyn ConversationStore, account: &str, at: i64, names: &str) -> StoredConversation {
    let made = conversation(account, at);
    assert_eq!(store.create(&made, &items(names), ROOM).await.unwrap(), ConversationWriteResult::Done);
    made
}

async fn page(store: &dyn ConversationStore, of: &StoredConversation, page: ItemPage) -> Vec<PositionedItem> {
    store.items(&of.account, of.id, page, EVER).await.unwrap()
}

/// The names of the items, in their order.
async fn names(store: &dyn ConversationStore, of: &StoredConversation) -> String {
    let all = page(store, of, ItemPage::ALL).await;
    all.iter().map(|placed| &*placed.item.id).collect::<Vec<_>>().join(" ")
}

async fn claim(
    store: &dyn ConversationStore,
    of: &StoredConversation,
    by: RequestId,
    now: i64,
) -> ClaimResult {
    let (now, until) = (Timestamp(now), Timestamp(now + 10));
    store.claim(&of.account, of.id, by, EVER, now, until).await.unwrap()
}

async fn is_there(store: &dyn ConversationStore, of: &StoredConversation) -> bool {
    store.find(&of.account, of.id, EVER).await.unwrap().is_some()
}

async fn what_is_made_comes_back_to_its_own_account_alone(store: &dyn ConversationStore) {
    let (own, other) = (made(store, "a", 1, "i1 i2").await, AccountId::new("b"));
    assert_eq!(store.create(&own, &items("i3"), ROOM).await.unwrap(), ConversationWriteResult::Done);
    assert_eq!(names(store, &own).await, "i1 i2", "what is there stays");
    assert_eq!(store.find(&own.account, own.id, EVER).await.unwrap().as_ref(), Some(&own));
    assert_eq!(store.find(&other, own.id, EVER).await.unwrap(), None);
    assert_eq!(store.items(&other, own.id, ItemPage::ALL, EVER).await.unwrap(), []);
    assert_eq!(store.item(&other, own.id, "i1", EVER).await.unwrap(), None);
    assert_eq!(store.set_metadata(&other, own.id, "{}", EVER, Timestamp(2)).await.unwrap(), None);
    assert_eq!(
        store.remove(&other, own.id, "i1", EVER, Timestamp(2)).await.unwrap(),
        ConversationWriteResult::Unknown
    );
    let (by, now) = (RequestId::new(), Timestamp(2));
    assert_eq!(store.claim(&other, own.id, by, EVER, now, Timestamp(9)).await.unwrap(), ClaimResult::Unknown);
    let strange = ConversationAppend { account: other.clone(), ..more(&own, None, "i3", 2) };
    assert_eq!(store.append(&strange, EVER, ROOM).await.unwrap(), ConversationWriteResult::Unknown);
    assert!(!store.delete(&other, own.id).await.unwrap());
    let described = store.set_metadata(&own.account, own.id, "{}", EVER, Timestamp(2)).await.unwrap();
    assert_eq!(described, Some(StoredConversation { metadata: "{}".into(), ..own.clone() }));
    assert!(store.delete(&own.account, own.id).await.unwrap());
    assert!(!store.delete(&own.account, own.id).await.unwrap());
    assert!(!is_there(store, &own).await);
    assert_eq!(names(store, &own).await, "");
}

async fn items_are_read_in_pages_from_either_end(store: &dyn ConversationStore) {
    let own = made(store, "pages", 1, "i1 i2 i3").await;
    assert_eq!(
        store.append(&more(&own, None, "i4 i5", 2), EVER, ROOM).await.unwrap(),
        ConversationWriteResult::Done
    );
    assert_eq!(names(store, &own).await, "i1 i2 i3 i4 i5");
    for (newest_first, expected) in
        [(false, ["i1 i2", "i3 i4", "i5", ""]), (true, ["i5 i4", "i3 i2", "i1", ""])]
    {
        let mut after = None;
        for expected in expected {
            let found = page(store, &own, ItemPage { after, newest_first, limit: 2 }).await;
            let ids: Vec<&str> = found.iter().map(|placed| &*placed.item.id).collect();
            assert_eq!(ids.join(" "), expected);
            after = found.last().map(|last| last.position).or(after);
        }
    }
}

async fn an_item_is_found_and_removed_and_the_others_keep_their_places(store: &dyn ConversationStore) {
    let own = made(store, "items", 1, "i1 i2 i3").await;
    let found = store.item(&own.account, own.id, "i2", EVER).await.unwrap().unwrap();
    assert_eq!(found.item, items("i2")[0]);
    let now = Timestamp(2);
    assert_eq!(
        store.remove(&own.account, own.id, "i2", EVER, now).await.unwrap(),
        ConversationWriteResult::Done
    );
    assert_eq!(
        store.remove(&own.account, own.id, "i2", EVER, now).await.unwrap(),
        ConversationWriteResult::Unknown
    );
    assert_eq!(store.item(&own.account, own.id, "i2", EVER).await.unwrap(), None);
    let behind = page(store, &own, ItemPage { after: Some(found.position), ..ItemPage::ALL }).await;
    assert_eq!(behind.len(), 1);
    assert_eq!(&*behind[0].item.id, "i3");
    store.append(&more(&own, None, "i4", 2), EVER, ROOM).await.unwrap();
    assert_eq!(names(store, &own).await, "i1 i3 i4");
}

async fn one_request_at_a_time_has_a_claim(store: &dyn ConversationStore) {
    let own = made(store, "claims", 1, "i1").await;
    let (first, second) = (RequestId::new(), RequestId::new());
    assert_eq!(claim(store, &own, first, 2).await, ClaimResult::Granted(own.clone()));
    assert_eq!(claim(store, &own, second, 3).await, ClaimResult::Busy);
    assert_eq!(claim(store, &own, first, 4).await, ClaimResult::Granted(own.clone()), "its own again");
    assert_eq!(claim(store, &own, second, 13).await, ClaimResult::Busy, "up to 14");
    assert!(!store.renew(&own.account, own.id, second, Timestamp(99)).await.unwrap());
    assert!(store.renew(&own.account, own.id, first, Timestamp(20)).await.unwrap());
    assert_eq!(claim(store, &own, second, 19).await, ClaimResult::Busy, "up to 20");
    let now = Timestamp(13);
    assert_eq!(
        store.append(&more(&own, None, "i2", 13), EVER, ROOM).await.unwrap(),
        ConversationWriteResult::Busy
    );
    assert_eq!(
        store.remove(&own.account, own.id, "i1", EVER, now).await.unwrap(),
        ConversationWriteResult::Busy
    );
    store.release(&own.account, own.id, second).await.unwrap();
    assert_eq!(claim(store, &own, second, 13).await, ClaimResult::Busy, "another's claim stays");
    store.release(&own.account, own.id, first).await.unwrap();
    assert_eq!(claim(store, &own, second, 13).await, ClaimResult::Granted(own.clone()));
    assert!(store.delete(&own.account, own.id).await.unwrap(), "what is claimed may go");
    assert_eq!(claim(store, &own, second, 13).await, ClaimResult::Unknown);
}

async fn a_claim_runs_out(store: &dyn ConversationStore) {
    let own = made(store, "expiring", 1, "i1").await;
    let (first, second) = (RequestId::new(), RequestId::new());
    claim(store, &own, first, 2).await;
    assert_eq!(
        store.append(&more(&own, None, "i2", 12), EVER, ROOM).await.unwrap(),
        ConversationWriteResult::Done
    );
    let late = store.append(&more(&own, Some(first), "i3", 13), EVER, ROOM).await.unwrap();
    assert_eq!(late, ConversationWriteResult::Busy, "somebody else was there in between");
    claim(store, &own, first, 20).await;
    assert_eq!(claim(store, &own, second, 30).await, ClaimResult::Granted(own.clone()));
    assert!(!store.renew(&own.account, own.id, first, Timestamp(99)).await.unwrap(), "it is lost");
    assert_eq!(
        store.append(&more(&own, Some(first), "i3", 31), EVER, ROOM).await.unwrap(),
        ConversationWriteResult::Busy
    );
    let late = store.append(&more(&own, Some(second), "i4", 99), EVER, ROOM).await.unwrap();
    assert_eq!(late, ConversationWriteResult::Done, "nobody came in between");
    assert_eq!(names(store, &own).await, "i1 i2 i4");
}

async fn an_answer_lengthens_only_what_it_has_a_claim_on(store: &dyn ConversationStore) {
    let own = made(store, "answers", 1, "").await;
    let by = RequestId::new();
    claim(store, &own, by, 2).await;
    let episode = Some("task-42".parse().unwrap());
    let answer = ConversationAppend { episode: episode.clone(), ..more(&own, Some(by), "i1 i2", 3) };
    assert_eq!(store.append(&answer, EVER, ROOM).await.unwrap(), ConversationWriteResult::Done);
    assert_eq!(
        store.append(&answer, EVER, ROOM).await.unwrap(),
        ConversationWriteResult::Busy,
        "the claim is over"
    );
    assert!(!store.renew(&own.account, own.id, by, Timestamp(99)).await.unwrap());
    assert_eq!(names(store, &own).await, "i1 i2");
    let found = store.find(&own.account, own.id, EVER).await.unwrap().unwrap();
    assert_eq!(found.episode, episode);
    store.append(&more(&own, None, "i3", 4), EVER, ROOM).await.unwrap();
    let found = store.find(&own.account, own.id, EVER).await.unwrap().unwrap();
    assert_eq!(found.episode, episode, "nothing said leaves it as it is");
}

async fn a_conversation_keeps_to_its_bound(store: &dyn ConversationStore) {
    let one = items("i1")[0].size();
    let own = conversation("short", 1);
    let most = u64::try_from(own.size() + 2 * one).unwrap();
    let bounds = ConversationLimits { conversation: most, ..ROOM };
    assert_eq!(store.create(&own, &items("i1 i2 i3"), bounds).await.unwrap(), ConversationWriteResult::Full);
    assert!(!is_there(store, &own).await);
    assert_eq!(store.create(&own, &items("i1"), bounds).await.unwrap(), ConversationWriteResult::Done);
    assert_eq!(
        store.append(&more(&own, None, "i2 i3", 2), EVER, bounds).await.unwrap(),
        ConversationWriteResult::Full
    );
    assert_eq!(
        store.append(&more(&own, None, "i2", 2), EVER, bounds).await.unwrap(),
        ConversationWriteResult::Done
    );
    assert_eq!(
        store.append(&more(&own, None, "i3", 2), EVER, bounds).await.unwrap(),
        ConversationWriteResult::Full
    );
    store.remove(&own.account, own.id, "i1", EVER, Timestamp(3)).await.unwrap();
    assert_eq!(
        store.append(&more(&own, None, "i3", 3), EVER, bounds).await.unwrap(),
        ConversationWriteResult::Done
    );
    assert_eq!(names(store, &own).await, "i2 i3");
}

async fn what_a_key_stored_goes_alone_and_then_what_the_account_has(store: &dyn ConversationStore) {
    let key = KeyId::of_declared(&AccountId::new("forgotten"));
    let (one, other) = (made(store, "forgotten", 1, "abc").await, made(store, "remembered", 1, "d").await);
    let bare = StoredConversation { key: None, ..conversation("forgotten", 2) };
    store.create(&bare, &items("e"), ROOM).await.unwrap();
    assert_eq!(store.delete_of(&one.account, Some(key)).await.unwrap(), 1);
    assert!(!is_there(store, &one).await && is_there(store, &bare).await);
    assert_eq!(store.delete_of(&one.account, None).await.unwrap(), 1);
    assert_eq!(store.delete_of(&one.account, None).await.unwrap(), 0);
    assert!(is_there(store, &other).await);
    assert_eq!(names(store, &one).await, "", "its items are gone with it");
}

async fn an_account_keeps_to_its_bound_and_others_lose_nothing(store: &dyn ConversationStore) {
    let other = made(store, "bystander", 1, "i1").await;
    let size = u64::try_from(other.size() + items("i1")[0].size()).unwrap();
    let bounds = ConversationLimits { account: 2 * size, ..ROOM };
    let kept: Vec<_> = [12, 11, 13].map(|at| conversation("bounded", at)).into();
    for one in &kept {
        assert_eq!(store.create(one, &items("i1"), bounds).await.unwrap(), ConversationWriteResult::Done);
        assert!(is_there(store, one).await, "the new one stays");
    }
    assert!(!is_there(store, &kept[1]).await, "the one that was not touched for longest");
    store.set_metadata(&kept[0].account, kept[0].id, &kept[0].metadata, EVER, Timestamp(20)).await.unwrap();
    let grown = store.append(&more(&kept[2], None, "i2", 21), EVER, bounds).await.unwrap();
    assert_eq!(grown, ConversationWriteResult::Done);
    assert!(!is_there(store, &kept[0]).await);
    assert_eq!(names(store, &kept[2]).await, "i1 i2");
    assert!(is_there(store, &other).await);
    assert!(store.delete(&kept[2].account, kept[2].id).await.unwrap());
    for at in [31, 32] {
        let next = conversation("bounded", at);
        store.create(&next, &items("i1"), bounds).await.unwrap();
        assert!(is_there(store, &next).await);
    }
    let left = conversation("bounded", 33);
    store.create(&left, &[], ConversationLimits { account: 3 * size, ..ROOM }).await.unwrap();
    assert!(is_there(store, &left).await, "what is deleted takes no room");
}

async fn what_is_too_old_is_not_there_and_goes_oldest_first(store: &dyn ConversationStore) {
    while store.purge(Timestamp(1_000), 100).await.unwrap() > 0 {}
    let mut kept = Vec::new();
    for at in [5, 7, 6, 9] {
        kept.push(made(store, "old", at, "i1").await);
    }
    let since = Timestamp(6);
    let old = &kept[0];
    assert_eq!(store.find(&old.account, old.id, since).await.unwrap(), None);
    assert_eq!(store.items(&old.account, old.id, ItemPage::ALL, since).await.unwrap(), []);
    assert_eq!(store.item(&old.account, old.id, "i1", since).await.unwrap(), None);
    let late = more(old, None, "i2", 10);
    assert_eq!(store.append(&late, since, ROOM).await.unwrap(), ConversationWriteResult::Unknown);
    let (by, now) = (RequestId::new(), Timestamp(10));
    let claimed = store.claim(&old.account, old.id, by, since, now, Timestamp(20)).await.unwrap();
    assert_eq!(claimed, ClaimResult::Unknown);
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 2);
    let mut there = Vec::new();
    for one in &kept {
        there.push(is_there(store, one).await);
    }
    assert_eq!(there, [false, true, false, true]);
    store.append(&more(&kept[1], None, "i2", 9), EVER, ROOM).await.unwrap();
    assert_eq!(store.purge(Timestamp(9), 2).await.unwrap(), 0, "it was touched");
}

#[tokio::test]
async fn memory_conforms() {
    conforms(&super::MemoryConversations::default()).await;
}
