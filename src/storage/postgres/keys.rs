//! Keys and the terms of accounts in PostgreSQL.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use crate::storage::keys::key_statements;
use crate::tenant::{KeyStore, KeyStoreChange, KeyStoreError, StoreVersion};

use super::changes::notify_keys;
use super::{BEGIN_SNAPSHOT, Postgres};

key_statements!(PgConnection, PgRow);

/// The keys in a PostgreSQL database, which all replicas share.
#[derive(Debug)]
pub struct PostgresKeyStore {
    database: Arc<Postgres>,
}

impl PostgresKeyStore {
    /// The keys of this database.
    pub fn new(database: Arc<Postgres>) -> PostgresKeyStore {
        PostgresKeyStore { database }
    }

    async fn change(&self, seen: StoreVersion, changes: &[KeyStoreChange]) -> Result<bool, sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        let changed = change(&mut transaction, seen, changes).await?;
        if changed {
            notify_keys(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(changed)
    }

    async fn read(&self) -> Result<KeyStoreState, sqlx::Error> {
        let mut transaction = self.database.pool.begin_with(BEGIN_SNAPSHOT).await?;
        let stored = stored(&mut transaction).await?;
        transaction.commit().await?;
        Ok(stored)
    }

    fn failed(&self, source: sqlx::Error) -> KeyStoreError {
        KeyStoreError::failed(format!("the keys in {} failed", self.database.place), source)
    }
}

impl KeyStore for PostgresKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        async { self.read().await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        async {
            let read = async { version(&mut *self.database.pool.acquire().await?).await };
            read.await.map_err(|source| self.failed(source))
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
