//! The trait `KeyStore` for a database.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::sql::{SqlConnection, SqlDatabase, Statement};
#[cfg(feature = "postgres")]
use crate::{postgres::keys_changed_notice, sql::SqlDialect};
use stint_types::tenant::{
    AuditEntry, AuditRecord, KeyStore, KeyStoreChange, KeyStoreError, KeyStoreState, StoreVersion,
};

use super::{audit_rows, key_rows, terms_rows};

/// Keys and terms in a database.
#[derive(Debug)]
pub(crate) struct SqlKeyStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlKeyStore {
    pub(crate) fn new(database: Arc<dyn SqlDatabase>) -> SqlKeyStore {
        SqlKeyStore { database }
    }

    /// Everything as it was at one moment.
    async fn read_state(&self) -> Result<KeyStoreState, sqlx::Error> {
        let mut reader = self.database.reader().await?;
        let mut snapshot = reader.snapshot().await?;
        let version = read_version(&mut *snapshot).await?;
        let keys = key_rows::read_keys(&mut *snapshot).await?;
        let terms = terms_rows::read_terms(&mut *snapshot).await?;
        snapshot.commit().await?;
        Ok(KeyStoreState {
            version,
            keys: keys.into_iter().map(|key| (key.id, key)).collect(),
            terms: terms.into_iter().map(|terms| (terms.account.clone(), terms)).collect(),
        })
    }

    /// False if somebody else made changes that the caller has not seen.
    async fn commit(
        &self,
        seen: StoreVersion,
        changes: &[KeyStoreChange],
        entries: &[AuditEntry],
    ) -> Result<bool, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let next = Statement::new("UPDATE keys_version SET version = version + 1 WHERE version = $1");
        let is_current = transaction.execute(next.bind(seen.0)).await? > 0;
        if is_current {
            for change in changes {
                apply(change, &mut *transaction).await?;
            }
            audit_rows::append(entries, &mut *transaction).await?;
            #[cfg(feature = "postgres")]
            if transaction.dialect() == SqlDialect::Postgres {
                transaction.execute(keys_changed_notice()).await?;
            }
        }
        transaction.commit().await?;
        Ok(is_current)
    }

    fn failed(&self, source: sqlx::Error) -> KeyStoreError {
        KeyStoreError::failed(format!("the keys in {} failed", self.database.place()), source)
    }
}

impl KeyStore for SqlKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        async { self.read_state().await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        let read = async { read_version(&mut *self.database.reader().await?).await };
        async { read.await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        async move {
            match self.commit(seen, changes, entries).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(KeyStoreError::Conflict),
                Err(source) => Err(self.failed(source)),
            }
        }
        .boxed()
    }

    fn append_audit<'a>(&'a self, entries: &'a [AuditEntry]) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        let append = async move {
            let mut writer = self.database.writer().await?;
            let mut transaction = writer.begin().await?;
            audit_rows::append(entries, &mut *transaction).await?;
            transaction.commit().await
        };
        async { append.await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn read_audit(
        &self,
        before: Option<u64>,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<AuditRecord>, KeyStoreError>> {
        let read =
            async move { audit_rows::read_latest(before, most, &mut *self.database.reader().await?).await };
        async { read.await.map_err(|source| self.failed(source)) }.boxed()
    }
}

async fn read_version(connection: &mut dyn SqlConnection) -> Result<StoreVersion, sqlx::Error> {
    let row = connection.fetch_one(Statement::new("SELECT version FROM keys_version")).await?;
    row.number("version").map(StoreVersion)
}

async fn apply(change: &KeyStoreChange, connection: &mut dyn SqlConnection) -> Result<(), sqlx::Error> {
    match change {
        KeyStoreChange::PutKey(key) => key_rows::put_key(key, connection).await,
        KeyStoreChange::PutTerms(terms) => terms_rows::put_terms(terms, connection).await,
        KeyStoreChange::RemoveTerms(account) => terms_rows::delete_terms(account, connection).await,
    }
}
