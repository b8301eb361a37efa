//! Whatever is done in whatever order, each database answers as the conversations in memory do.

use stint_sessions::agent::conversations::MemoryConversations;
use stint_types::units::{EpisodeId, SeededRng};

use super::*;

const STEPS: i64 = 500;
/// So small that it is often reached.
const TIGHT: ConversationLimits = ConversationLimits { conversation: 1200, account: 3000 };
const KEPT: i64 = 60;

/// Who acts on what.
struct Cast {
    conversations: Vec<StoredConversation>,
    requests: [RequestId; 3],
}

impl Cast {
    fn new() -> Cast {
        let accounts = ["a", "b"].iter().cycle().take(10);
        let conversations = accounts.map(|account| conversation(account, 0)).collect();
        Cast { conversations, requests: [(); 3].map(|()| RequestId::new()) }
    }
}

/// The id of an item that is there, or of none; some have a zero in them, some no end.
async fn some_item(store: &dyn ConversationStore, of: &StoredConversation, dice: &mut SeededRng) -> String {
    let there = names(store, of).await;
    there.get(dice.below(there.len() + 1)).cloned().unwrap_or_else(|| "no\0such".into())
}

fn new_items(dice: &mut SeededRng, at: i64) -> Vec<StoredItem> {
    let count = dice.below(4);
    let id = |number: usize| match dice.below(4) {
        0 => format!("{at}\0{number}"),
        1 => format!("{}{at}/{number}", "é".repeat(dice.below(200))),
        _ => format!("{at}/{number}"),
    };
    let value = |id: String| StoredItem { id: id.into(), value: r#"{"text":"\u0000é"}"#.into() };
    (0..count).map(id).map(value).collect()
}

/// Does what the dice say, and tells what came of it.
async fn act(store: &dyn ConversationStore, cast: &Cast, mut dice: SeededRng, at: i64) -> String {
    let dice = &mut dice;
    let (now, since, until) = (Timestamp(at), Timestamp(at - KEPT), Timestamp(at + 20));
    let one = &cast.conversations[dice.below(cast.conversations.len())];
    let (account, id, by) = (&one.account, one.id, cast.requests[dice.below(3)]);
    match dice.below(14) {
        0 | 1 => {
            let new = StoredConversation { at: now, ..one.clone() };
            format!("{:?}", store.create(&new, &new_items(dice, at), TIGHT).await)
        }
        2 => format!("{:?}", store.find(account, id, since).await),
        3 => {
            let metadata = format!(r#"{{"é":"{}"}}"#, "é".repeat(dice.below(50)));
            format!("{:?}", store.set_metadata(account, id, &metadata, since, now).await)
        }
        4 => format!("{:?}", store.delete(account, id).await),
        5 => {
            let (after, limit) = (Some(1 + dice.next_u64() % 5), u32::try_from(dice.below(4)).unwrap());
            let page = ItemPage { after, newest_first: dice.below(2) == 0, limit };
            format!("{:?}", store.items(account, id, page, since).await)
        }
        6 => {
            let item = some_item(store, one, dice).await;
            format!("{:?}", store.item(account, id, &item, since).await)
        }
        7 => {
            let item = some_item(store, one, dice).await;
            format!("{:?}", store.remove(account, id, &item, since, now).await)
        }
        8 | 9 => format!("{:?}", store.claim(account, id, by, since, now, until).await),
        10 => format!("{:?}", store.renew(account, id, by, until).await),
        11 if dice.below(4) == 0 => format!("{:?}", store.purge(since, 1).await),
        11 => format!("{:?}", store.release(account, id, by).await),
        _ => {
            let claimant = (dice.below(2) == 0).then_some(by);
            let episode: Option<EpisodeId> = (dice.below(2) == 0).then(|| format!("e{at}").parse().unwrap());
            let new = ConversationAppend { claimant, episode, ..more(one, new_items(dice, at), at) };
            format!("{:?}", store.append(&new, since, TIGHT).await)
        }
    }
}

/// All that is there.
async fn all(store: &dyn ConversationStore, cast: &Cast) -> String {
    let mut told = String::new();
    for one in &cast.conversations {
        let found = store.find(&one.account, one.id, EVER).await;
        let items = store.items(&one.account, one.id, ItemPage::ALL, EVER).await;
        told += &format!("{found:?} {items:?}\n");
    }
    told
}

async fn agrees(store: &dyn ConversationStore, seed: u64) {
    let (model, cast, mut dice) = (MemoryConversations::default(), Cast::new(), SeededRng::new(seed));
    for at in 1..=STEPS {
        let drawn = SeededRng::new(dice.next_u64());
        let (expected, told) = (act(&model, &cast, drawn, at).await, act(store, &cast, drawn, at).await);
        assert_eq!(told, expected, "step {at} of {seed}");
        assert_eq!(all(store, &cast).await, all(&model, &cast).await, "after step {at} of {seed}");
    }
}

#[tokio::test]
async fn conversations_in_sqlite_do_as_those_in_memory() {
    for seed in 1..=2 {
        let folder = tempfile::tempdir().unwrap();
        let database = sqlite(&folder.path().join("stint.db")).await;
        let store = SqlConversationStore::new(database.clone());
        agrees(&store, seed).await;
        check(&store, counted_in_sqlite(&database).await).await;
    }
}

#[tokio::test]
async fn conversations_in_postgres_do_as_those_in_memory() {
    for seed in 1..=2 {
        let database = connect(&cluster().database()).await;
        let store = SqlConversationStore::new(database.clone());
        agrees(&store, seed).await;
        check(&store, counted_in_postgres(&database).await).await;
    }
}
