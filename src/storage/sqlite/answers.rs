//! What idempotency keys stand for, in `SQLite`.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite as Kind, SqliteConnection};

use crate::idempotency::{
    IdempotencyChange, IdempotencyKey, IdempotencyRecord, IdempotencyStore, IdempotencyStoreError,
};
use crate::storage::answers::answer_statements;
use crate::units::Timestamp;

use super::Sqlite;

answer_statements!(Kind, SqliteArguments, SqliteConnection, SqliteRow);

/// Records in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteIdempotencyStore {
    database: Arc<Sqlite>,
}

/// The file is one process's alone, so whatever runs in it ran in one that is gone.
const INTERRUPT: &str = "UPDATE answers SET ended = 'interrupted' WHERE ended IS NULL";

impl SqliteIdempotencyStore {
    /// The records of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteIdempotencyStore {
        SqliteIdempotencyStore { database }
    }

    async fn read(
        &self,
        scope: &IdempotencyKey,
        since: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, sqlx::Error> {
        let query = sqlx::query(FIND).bind(scope.account.as_str()).bind(&*scope.key).bind(since.0);
        let row = query.fetch_optional(&mut *self.database.reader().await).await?;
        row.as_ref().map(record).transpose()
    }

    async fn commit(&self, changes: &[IdempotencyChange]) -> Result<Vec<bool>, sqlx::Error> {
        let statements = changes.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let mut took_place = Vec::with_capacity(statements.len());
        for statement in statements {
            took_place.push(run(statement, &mut transaction).await? > 0);
        }
        transaction.commit().await?;
        Ok(took_place)
    }

    async fn alone(&self, statement: AnswerStatement) -> Result<u64, IdempotencyStoreError> {
        let done = async { run(statement, &mut *self.database.writer().await?).await };
        done.await.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: sqlx::Error) -> IdempotencyStoreError {
        IdempotencyStoreError::caused(
            format!("the database {} failed", self.database.settings.path.display()),
            source,
        )
    }
}

impl IdempotencyStore for SqliteIdempotencyStore {
    fn find<'a>(
        &'a self,
        scope: &'a IdempotencyKey,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<IdempotencyRecord>, IdempotencyStoreError>> {
        async move { self.read(scope, since).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn write<'a>(
        &'a self,
        changes: &'a [IdempotencyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>> {
        async move { self.commit(changes).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn interrupt(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.alone(sqlx::query(INTERRUPT)).boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.alone(sqlx::query(PURGE).bind(before.0).bind(i64::from(most))).boxed()
    }
}
