//! Conversations that callers come back to, in `SQLite`.

use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite as Kind, SqliteConnection};
use tokio::sync::MutexGuard;

use crate::agent::conversations::{
    ConversationAppend, ConversationLimits, ConversationWriteResult, ConversationsError, ItemPage,
    PositionedItem, StoredConversation, StoredItem,
};
use crate::storage::conversations::{
    ConversationEdit, claim_statements, conversation_store, edit_statements, item_statements,
    record_statements,
};
use crate::units::{AccountId, ConversationId, Timestamp};

use super::Sqlite;

record_statements!(Kind, SqliteArguments, SqliteConnection, SqliteRow, "", "");
claim_statements!(SqliteConnection);
item_statements!(SqliteConnection, SqliteRow);
edit_statements!(SqliteConnection, "");
conversation_store!(SqliteConversations);

const PUT: &str = "\
    INSERT INTO conversation_items (account, conversation, place, id, value, bytes) VALUES ($1, $2, $3, $4, $5, $6)";

async fn put_items(
    account: &AccountId,
    id: ConversationId,
    first: i64,
    items: &[StoredItem],
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    for (place, item) in (first..).zip(items) {
        let query = of(PUT, account, id).bind(place).bind(item.id.as_bytes().to_vec());
        run(query.bind(item.value.to_string()).bind(whole(item.size())), connection).await?;
    }
    Ok(())
}

/// Conversations in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteConversations {
    database: Arc<Sqlite>,
}

impl SqliteConversations {
    /// The conversations of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteConversations {
        SqliteConversations { database }
    }

    async fn reader(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        Ok(self.database.reader().await)
    }

    async fn writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        self.database.writer().await
    }

    async fn commit(&self, edit: ConversationEdit<'_>) -> Result<ConversationWriteResult, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let change = make_edit(edit, &mut transaction).await?;
        transaction.commit().await?;
        Ok(change)
    }

    fn failed(&self, source: sqlx::Error) -> ConversationsError {
        ConversationsError::caused(
            format!("the database {} failed", self.database.settings.path.display()),
            source,
        )
    }
}
