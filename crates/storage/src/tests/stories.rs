//! Request records of earlier versions.

use std::sync::Arc;

use stint_sessions::history::conformance::story;
use stint_sessions::history::{HistoryStore, WritableRecord};
use stint_types::units::Timestamp;

use super::super::history::SqlHistoryStore;
use super::super::sql::{SqlDatabase, Statement};
use super::super::sqlite::Sqlite;
use super::settings;

/// So are all in PostgreSQL, and those that earlier versions wrote into a file.
#[tokio::test]
async fn a_story_that_is_not_packed_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap());
    let store = SqlHistoryStore::new(database.clone());
    let story = story(1_000);
    let record = WritableRecord::new(Arc::new(story.clone()));
    store.insert(std::slice::from_ref(&record)).await.unwrap();
    let texts = "UPDATE stories SET packed = NULL, decision = ?, outcome = ? \
                 WHERE length(packed) > 1 AND decision = ''";
    let texts = Statement::new(texts).bind(record.stored_decision()).bind(record.stored_outcome());
    assert_eq!(database.writer().await.unwrap().execute(texts).await.unwrap(), 1);
    assert_eq!(store.find(story.decision.id, Timestamp(0)).await.unwrap(), Some(story));
}
