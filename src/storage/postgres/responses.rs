//! Responses that callers may come back to, in PostgreSQL.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{PgConnection, Postgres as Kind};

use crate::agent::stored::{Chain, Responses, ResponsesError, StoredResponse};
use crate::storage::responses::response_statements;
use crate::units::{AccountId, RequestId, Timestamp};

use super::Postgres;

response_statements!(Kind, PgArguments, PgConnection, PgRow, " FOR UPDATE SKIP LOCKED");

/// Responses in a PostgreSQL database, which all replicas share.
#[derive(Debug)]
pub struct PostgresResponses {
    database: Arc<Postgres>,
}

impl PostgresResponses {
    /// The responses of this database.
    pub fn new(database: Arc<Postgres>) -> PostgresResponses {
        PostgresResponses { database }
    }

    async fn commit(&self, response: &StoredResponse, account_max: u64) -> Result<(), sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        write_response(response, account_max, &mut transaction).await?;
        transaction.commit().await
    }

    async fn alone(&self, statement: Query) -> Result<u64, ResponsesError> {
        let done = async { run(statement, &mut *self.database.pool.acquire().await?).await };
        done.await.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: sqlx::Error) -> ResponsesError {
        ResponsesError::caused(format!("the database {} failed", self.database.place), source)
    }
}

impl Responses for PostgresResponses {
    fn keep<'a>(
        &'a self,
        response: &'a StoredResponse,
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>> {
        async move { self.commit(response, account_max).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
        let found =
            async move { read_response(account, id, since, &mut *self.database.pool.acquire().await?).await };
        found.map(|found| found.map_err(|source| self.failed(source))).boxed()
    }

    fn chain<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<Chain>, ResponsesError>> {
        let found = async move {
            read_chain(account, id, since, bytes_max, &mut *self.database.pool.acquire().await?).await
        };
        found.map(|found| found.map_err(|source| self.failed(source))).boxed()
    }

    fn delete<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
    ) -> BoxFuture<'a, Result<bool, ResponsesError>> {
        async move { Ok(self.alone(delete(account, id)).await? > 0) }.boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        self.alone(purge(before, most)).boxed()
    }
}
