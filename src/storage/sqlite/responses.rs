//! Responses that callers may come back to, in `SQLite`.

use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite as Kind, SqliteConnection};
use tokio::sync::MutexGuard;

use crate::agent::stored::{ResponseChain, StoredResponse};
use crate::storage::responses::{response_statements, response_store};
use crate::units::{AccountId, RequestId, Timestamp};

use super::Sqlite;

response_statements!(Kind, SqliteArguments, SqliteConnection, SqliteRow, "");
response_store!(SqliteResponses);

/// Responses in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteResponses {
    database: Arc<Sqlite>,
}

impl SqliteResponses {
    /// The responses of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteResponses {
        SqliteResponses { database }
    }

    async fn reader(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        Ok(self.database.reader().await)
    }

    async fn writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        self.database.writer().await
    }

    async fn commit(&self, response: &StoredResponse, account_max: u64) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        write_response(response, account_max, &mut transaction).await?;
        transaction.commit().await
    }

    fn failed(&self, source: sqlx::Error) -> ResponsesError {
        ResponsesError::caused(
            format!("the database {} failed", self.database.settings.path.display()),
            source,
        )
    }
}
