//! The keys on disk.

use std::sync::Arc;

use super::super::{Sqlite, SqliteKeyStore};
use crate::tenant::conformance::{conforms, record};
use crate::tenant::{Change, KeyStore, Version};

use super::settings;

#[tokio::test]
async fn the_keys_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    conforms(&SqliteKeyStore::new(Arc::new(database))).await;
}

/// AU-12: what a thief of the database gets is no secret, nor anything that is taken for one.
#[tokio::test]
async fn the_database_holds_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let secret = "sk-stint-a-secret-that-is-nowhere";
    let store = SqliteKeyStore::new(Arc::new(Sqlite::open(&settings(&path)).await.unwrap()));
    store.apply(Version(0), &[Change::Key(record("acme/alice", secret))]).await.unwrap();
    assert_eq!(store.load().await.unwrap().keys.len(), 1);
    drop(store);
    assert!(!std::fs::read(&path).unwrap().is_empty());
    for file in std::fs::read_dir(folder.path()).unwrap() {
        // Its log may vanish meanwhile, when the last connection has closed.
        let Ok(bytes) = std::fs::read(file.unwrap().path()) else { continue };
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}
