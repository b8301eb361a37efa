//! Keys and the terms of accounts in `SQLite`.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, SqliteConnection};

use crate::storage::keys::key_statements;
use crate::tenant::{KeyStore, KeyStoreChange, KeyStoreError, StoreVersion};

use super::Sqlite;

key_statements!(SqliteConnection, SqliteRow);

/// The keys in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteKeyStore {
    database: Arc<Sqlite>,
}

impl SqliteKeyStore {
    /// The keys of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteKeyStore {
        SqliteKeyStore { database }
    }

    async fn change(&self, seen: StoreVersion, changes: &[KeyStoreChange]) -> Result<bool, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let changed = change(&mut transaction, seen, changes).await?;
        transaction.commit().await?;
        Ok(changed)
    }

    async fn read(&self) -> Result<KeyStoreState, sqlx::Error> {
        let mut reader = self.database.reader().await;
        let mut transaction = reader.begin().await?;
        let stored = stored(&mut transaction).await?;
        transaction.commit().await?;
        Ok(stored)
    }

    fn failed(&self, source: sqlx::Error) -> KeyStoreError {
        KeyStoreError::failed(format!("the keys in {} failed", self.database.settings.path.display()), source)
    }
}

impl KeyStore for SqliteKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        async { self.read().await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        async {
            let read = version(&mut *self.database.reader().await).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        async move {
            match self.change(seen, changes).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(KeyStoreError::Conflict),
                Err(source) => Err(self.failed(source)),
            }
        }
        .boxed()
    }
}
