//! Conversations without their items, as rows of the table `conversations`. The database deletes the items of a
//! conversation with it.

use crate::sql::{SqlConnection, SqlRow, SqlText, Statement, sql, to_column};
use stint_sessions::agent::conversations::StoredConversation;
use stint_types::units::{AccountId, ConversationId, Timestamp};

/// What [`conversation`] reads.
pub(super) const COLUMNS: &str = "account, id, created_at, metadata, episode, key_id";

const DELETE: &str = "DELETE FROM conversations WHERE account = $1 AND id = $2";

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

/// Deletes a conversation.
pub(super) fn delete(account: &AccountId, id: ConversationId) -> Statement {
    of(DELETE, account, id)
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

/// Deletes others of the account until it keeps to its limit, in the order in which they were touched last.
pub(super) async fn make_room(
    account: &AccountId,
    kept: ConversationId,
    most: u64,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    loop {
        // Nobody changes it before this transaction ends.
        let sql = sql(
            "SELECT bytes FROM conversation_bytes WHERE account = $1{}",
            &[&connection.dialect().for_update()],
        );
        let bytes: i64 = connection.fetch_one(Statement::new(sql).bind(account)).await?.get("bytes")?;
        let surplus = bytes.saturating_sub(to_column(most));
        if surplus <= 0 || !delete_oldest(account, kept, surplus, connection).await? {
            return Ok(());
        }
    }
}

/// Deletes until so many bytes are free, some conversations at a time; false if there are none.
async fn delete_oldest(
    account: &AccountId,
    kept: ConversationId,
    bytes: i64,
    connection: &mut dyn SqlConnection,
) -> Result<bool, sqlx::Error> {
    // Conversations that another transaction has locked are left to it. So a transaction that waits for a conversation
    // has nothing yet that others wait for, and there is no deadlock.
    let sql = sql(
        "SELECT id, bytes FROM conversations WHERE account = $1 AND id <> $2 ORDER BY touched_at, id LIMIT 64{}",
        &[&connection.dialect().for_update_skip_locked()],
    );
    let rows = connection.fetch_all(of(sql, account, kept)).await?;
    let mut free = 0;
    for row in &rows {
        if free >= bytes {
            break;
        }
        free += row.get::<i64>("bytes")?;
        connection.execute(delete(account, ConversationId::from_bytes(row.bytes("id")?))).await?;
    }
    Ok(!rows.is_empty())
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
