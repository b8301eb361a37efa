//! Responses that callers may come back to, in PostgreSQL.

use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{PgConnection, Postgres as Kind};

use crate::agent::stored::{ResponseChain, StoredResponse};
use crate::storage::responses::{response_statements, response_store};
use crate::units::{AccountId, RequestId, Timestamp};

use super::Postgres;

response_statements!(Kind, PgArguments, PgConnection, PgRow, " FOR UPDATE SKIP LOCKED");
response_store!(PostgresResponses);

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

    async fn reader(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.database.pool.acquire().await
    }

    async fn writer(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.reader().await
    }

    async fn commit(&self, response: &StoredResponse, account_max: u64) -> Result<(), sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        write_response(response, account_max, &mut transaction).await?;
        transaction.commit().await
    }

    fn failed(&self, source: sqlx::Error) -> ResponsesError {
        ResponsesError::caused(format!("the database {} failed", self.database.place), source)
    }
}
