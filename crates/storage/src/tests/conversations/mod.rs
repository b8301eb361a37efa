//! Conversations in both databases: what each store must do, and that the bytes they count are those that are there.

mod at_once;
mod broken_off;
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Postgres;
use crate::conversations::SqlConversationStore;
use stint_sessions::agent::conversations::conformance::conforms;
use stint_sessions::agent::conversations::{
    ClaimResult, ConversationAppend, ConversationLimits, ConversationStore, ConversationWriteResult,
    ItemPage, StoredConversation, StoredItem,
};
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::cluster::cluster;
use super::postgres::connect;
use super::{Sqlite, patiently, settings};

const EVER: Timestamp = Timestamp(i64::MIN);
const ROOM: ConversationLimits = ConversationLimits { conversation: 1 << 20, account: 1 << 30 };

fn conversation(account: &str, at: i64) -> StoredConversation {
    let (account, at) = (AccountId::new(account), Timestamp(at));
    let (id, key) = (ConversationId::new(), None);
    StoredConversation { id, account, key, at, metadata: "{}".into(), episode: None }
}

fn item(id: &str) -> StoredItem {
    StoredItem { id: id.into(), value: format!(r#"{{"id":"{id}","text":"é"}}"#).into() }
}

fn more(of: &StoredConversation, items: Vec<StoredItem>, at: i64) -> ConversationAppend {
    let (account, id, at) = (of.account.clone(), of.id, Timestamp(at));
    ConversationAppend { account, id, claimant: None, items, episode: None, at }
}

async fn sqlite(path: &std::path::Path) -> Arc<Sqlite> {
    Arc::new(patiently(async || Sqlite::open(&settings(path)).await).await)
}

async fn names(store: &dyn ConversationStore, of: &StoredConversation) -> Vec<String> {
    let all = store.items(&of.account, of.id, ItemPage::ALL, EVER).await.unwrap();
    all.iter().map(|placed| placed.item.id.to_string()).collect()
}

/// What a database counted.
struct Counted {
    conversations: Vec<(String, Vec<u8>, i64)>,
    accounts: BTreeMap<String, i64>,
    items: i64,
}

macro_rules! counted {
    ($connection:expr) => {{
        let connection = &mut *$connection;
        let each = sqlx::query_as("SELECT account, id, bytes FROM conversations");
        let accounts = sqlx::query_as("SELECT account, bytes FROM conversation_bytes WHERE bytes <> 0");
        let items = sqlx::query_scalar("SELECT count(*) FROM conversation_items");
        Counted {
            conversations: each.fetch_all(&mut *connection).await.unwrap(),
            accounts: accounts.fetch_all(&mut *connection).await.unwrap().into_iter().collect(),
            items: items.fetch_one(connection).await.unwrap(),
        }
    }};
}

async fn counted_in_sqlite(database: &Sqlite) -> Counted {
    counted!(database.lock_writer().await.unwrap())
}

async fn counted_in_postgres(database: &Postgres) -> Counted {
    counted!(database.pool().acquire().await.unwrap())
}

/// What is counted is what is there: the bytes of each conversation and account, and no item without its conversation.
async fn check(store: &dyn ConversationStore, counted: Counted) {
    let (mut accounts, mut items) = (BTreeMap::new(), 0);
    for (account, id, bytes) in counted.conversations {
        let id = ConversationId::from_bytes(id.try_into().unwrap());
        let owner = AccountId::new(account.as_str());
        let found = store.find(&owner, id, EVER).await.unwrap().unwrap();
        let there = store.items(&owner, id, ItemPage::ALL, EVER).await.unwrap();
        let size = found.size() + there.iter().map(|placed| placed.item.size()).sum::<usize>();
        assert_eq!(bytes, i64::try_from(size).unwrap());
        assert!(there.windows(2).all(|pair| pair[0].position < pair[1].position));
        *accounts.entry(account).or_default() += bytes;
        items += i64::try_from(there.len()).unwrap();
    }
    assert_eq!((accounts, items), (counted.accounts, counted.items));
}

#[tokio::test]
async fn conversations_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = sqlite(&folder.path().join("stint.db")).await;
    let store = SqlConversationStore::new(database.clone());
    conforms(&store).await;
    check(&store, counted_in_sqlite(&database).await).await;
}

#[tokio::test]
async fn conversations_in_postgres_conform() {
    let database = connect(&cluster().database()).await;
    let store = SqlConversationStore::new(database.clone());
    conforms(&store).await;
    check(&store, counted_in_postgres(&database).await).await;
}

#[tokio::test]
async fn conversations_in_sqlite_survive_a_restart_with_their_claims() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let (made, by) = (conversation("a", 1), RequestId::new());
    let store = SqlConversationStore::new(sqlite(&path).await);
    store.create(&made, &[item("i1")], ROOM).await.unwrap();
    store.append(&more(&made, vec![item("i2")], 2), EVER, ROOM).await.unwrap();
    let claim = async |store: &SqlConversationStore, by| {
        store.claim(&made.account, made.id, by, EVER, Timestamp(3), Timestamp(13)).await.unwrap()
    };
    assert_eq!(claim(&store, by).await, ClaimResult::Granted(made.clone()));
    drop(store);
    let database = sqlite(&path).await;
    let store = SqlConversationStore::new(database.clone());
    assert_eq!(claim(&store, RequestId::new()).await, ClaimResult::Busy);
    let answer = ConversationAppend { claimant: Some(by), ..more(&made, vec![item("i3")], 4) };
    assert_eq!(store.append(&answer, EVER, ROOM).await.unwrap(), ConversationWriteResult::Done);
    assert_eq!(names(&store, &made).await, ["i1", "i2", "i3"]);
    check(&store, counted_in_sqlite(&database).await).await;
}
