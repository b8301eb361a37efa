//! Conversations without their items, as rows of the table `conversations`. The database deletes the items of a
//! conversation with it.

use crate::account_table::AccountTable;
use crate::sql::{SqlConnection, SqlRow, SqlText, Statement, sql};
use stint_sessions::agent::conversations::StoredConversation;
use stint_types::units::{AccountId, ConversationId, Timestamp};

/// What [`conversation`] reads.
pub(super) const COLUMNS: &str = "account, id, created_at, metadata, episode, key_id";

/// The table.
pub(super) const CONVERSATIONS: AccountTable =
    AccountTable { name: "conversations", age: "touched_at", sums: "conversation_bytes" };

/// A statement about one conversation: its first two parameters are the account and the id.
pub(super) fn of(sql: impl Into<SqlText>, account: &AccountId, id: ConversationId) -> Statement {
    Statement::new(sql).bind(account).bind(id)
}

/// The conversation of that name, if it was touched since then.
pub(super) async fn read_conversation(
    account: &AccountId,
    id: ConversationId,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredConversation>, sqlx::Error> {
    let sql =
        sql("SELECT {} FROM conversations WHERE account = $1 AND id = $2 AND touched_at >= $3", &[&COLUMNS]);
    let row = connection.fetch_optional(of(sql, account, id).bind(since)).await?;
    row.as_ref().map(conversation).transpose()
}

/// Replaces the metadata.
pub(super) async fn set_metadata(
    account: &AccountId,
    id: ConversationId,
    metadata: &str,
    since: Timestamp,
    now: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredConversation>, sqlx::Error> {
    let sql = sql(
        "UPDATE conversations SET metadata = $4, bytes = bytes - octet_length(metadata) + $5, \
            touched_at = CASE WHEN touched_at < $6 THEN $6 ELSE touched_at END \
         WHERE account = $1 AND id = $2 AND touched_at >= $3 RETURNING {}",
        &[&COLUMNS],
    );
    let change = of(sql, account, id).bind(since).bind(metadata).bind(metadata.len()).bind(now);
    connection.fetch_changed(change).await?.as_ref().map(conversation).transpose()
}

/// Deletes the oldest conversations; returns how many.
pub(super) async fn delete_before(
    before: Timestamp,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<u64, sqlx::Error> {
    let sql = sql(
        "WITH old AS (SELECT account, id FROM conversations WHERE touched_at < $1 \
                      ORDER BY touched_at, id LIMIT $2{}) \
         DELETE FROM conversations WHERE (account, id) IN (SELECT account, id FROM old)",
        &[&connection.dialect().for_update_skip_locked()],
    );
    connection.execute(Statement::new(sql).bind(before).bind(most)).await
}

/// A conversation of a row with these [`COLUMNS`].
pub(super) fn conversation(row: &SqlRow) -> Result<StoredConversation, sqlx::Error> {
    Ok(StoredConversation {
        id: ConversationId::from_bytes(row.bytes("id")?),
        account: row.account("account")?,
        key: row.parsed_or_null("key_id")?,
        at: row.time("created_at")?,
        metadata: row.get::<String>("metadata")?.into(),
        episode: row.parsed_or_null("episode")?,
    })
}
