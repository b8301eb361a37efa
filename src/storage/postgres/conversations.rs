//! Conversations that callers come back to, in PostgreSQL.

use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{PgConnection, Postgres as Kind};

use crate::agent::conversations::{
    ConversationAppend, ConversationLimits, ConversationWriteResult, ConversationsError, ItemPage,
    PositionedItem, StoredConversation, StoredItem,
};
use crate::storage::conversations::{
    ConversationEdit, claim_statements, conversation_store, edit_statements, item_statements,
    record_statements,
};
use crate::units::{AccountId, ConversationId, Timestamp};

use super::Postgres;

record_statements!(Kind, PgArguments, PgConnection, PgRow, " FOR UPDATE", " FOR UPDATE SKIP LOCKED");
claim_statements!(PgConnection);
item_statements!(PgConnection, PgRow);
edit_statements!(PgConnection, " FOR UPDATE");
conversation_store!(PostgresConversations);

/// All at once: others wait for the conversation meanwhile.
const PUT: &str = "\
    INSERT INTO conversation_items (account, conversation, place, id, value, bytes) \
    SELECT $1, $2, $3 + number - 1, id, value, bytes \
    FROM UNNEST($4::bytea[], $5::text[], $6::bigint[]) WITH ORDINALITY AS new (id, value, bytes, number)";

async fn put_items(
    account: &AccountId,
    id: ConversationId,
    first: i64,
    items: &[StoredItem],
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let ids: Vec<&[u8]> = items.iter().map(|item| item.id.as_bytes()).collect();
    let values: Vec<&str> = items.iter().map(|item| &*item.value).collect();
    let bytes: Vec<i64> = items.iter().map(|item| whole(item.size())).collect();
    run(of(PUT, account, id).bind(first).bind(ids).bind(values).bind(bytes), connection).await.map(drop)
}

/// Conversations in a PostgreSQL database, which all replicas share.
#[derive(Debug)]
pub struct PostgresConversations {
    database: Arc<Postgres>,
}

impl PostgresConversations {
    /// The conversations of this database.
    pub fn new(database: Arc<Postgres>) -> PostgresConversations {
        PostgresConversations { database }
    }

    async fn reader(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.database.pool.acquire().await
    }

    async fn writer(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.reader().await
    }

    async fn commit(&self, edit: ConversationEdit<'_>) -> Result<ConversationWriteResult, sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        let change = make_edit(edit, &mut transaction).await?;
        transaction.commit().await?;
        Ok(change)
    }

    fn failed(&self, source: sqlx::Error) -> ConversationsError {
        ConversationsError::caused(format!("the database {} failed", self.database.place), source)
    }
}
