//! Conversations without their items.

/// The functions that read and write them, for one database. Items go with their conversation by themselves.
macro_rules! record_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty, $locked:literal, $unlocked:literal) => {
        use sqlx::Row;

        use crate::storage::conversations::whole;
        use crate::units::{EpisodeId, RequestId};

        /// One that is there already stays as it is.
        const MAKE: &str = "\
            INSERT INTO conversations (account, id, created_at, touched_at, metadata, episode, next_place, bytes) \
            VALUES ($1, $2, $3, $3, $4, $5, $6, $7) ON CONFLICT (account, id) DO NOTHING";

        const FIND: &str = "\
            SELECT account, id, created_at, metadata, episode FROM conversations \
            WHERE account = $1 AND id = $2 AND touched_at >= $3";

        const DESCRIBE: &str = "\
            UPDATE conversations SET metadata = $4, bytes = bytes - octet_length(metadata) + $5, \
                touched_at = CASE WHEN touched_at < $6 THEN $6 ELSE touched_at END \
            WHERE account = $1 AND id = $2 AND touched_at >= $3 \
            RETURNING account, id, created_at, metadata, episode";

        const DELETE: &str = "DELETE FROM conversations WHERE account = $1 AND id = $2";

        /// What it takes now; nobody changes it before this transaction has ended.
        const TAKEN: &str = concat!("SELECT bytes FROM conversation_bytes WHERE account = $1", $locked);

        // What another has in hand just now is left to it. So whoever waits for a conversation has nothing yet that
        // others wait for, and nobody waits in a circle.
        const OLDEST: &str = concat!(
            "\
            SELECT id, bytes FROM conversations WHERE account = $1 AND id <> $2 ORDER BY touched_at, id LIMIT 64",
            $unlocked,
        );

        const PURGE: &str = concat!(
            "\
            WITH old AS ( \
                SELECT account, id FROM conversations WHERE touched_at < $1 ORDER BY touched_at, id LIMIT $2",
            $unlocked,
            ") DELETE FROM conversations WHERE (account, id) IN (SELECT account, id FROM old)",
        );

        type ConversationStatement = sqlx::query::Query<'static, $database, $arguments>;

        async fn run(statement: ConversationStatement, connection: &mut $connection) -> Result<u64, sqlx::Error> {
            Ok(statement.execute(connection).await?.rows_affected())
        }

        /// The row that a change returns. It is run to its end, where `SQLite` commits it: an error of that would be
        /// lost to whoever takes the row and leaves.
        async fn changed(statement: ConversationStatement, connection: &mut $connection) -> Result<Option<$row>, sqlx::Error> {
            Ok(statement.fetch_all(connection).await?.pop())
        }

        fn of(statement: &'static str, account: &AccountId, id: ConversationId) -> ConversationStatement {
            sqlx::query(statement).bind(account.as_str().to_owned()).bind(id.as_bytes().to_vec())
        }

        fn purge(before: Timestamp, most: u32) -> ConversationStatement {
            sqlx::query(PURGE).bind(before.0).bind(i64::from(most))
        }

        async fn read_conversation(
            account: &AccountId,
            id: ConversationId,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<StoredConversation>, sqlx::Error> {
            let row = of(FIND, account, id).bind(since.0).fetch_optional(connection).await?;
            row.as_ref().map(conversation).transpose()
        }

        fn described(account: &AccountId, id: ConversationId, metadata: &str, since: Timestamp) -> ConversationStatement {
            of(DESCRIBE, account, id).bind(since.0).bind(metadata.to_owned()).bind(whole(metadata.len()))
        }

        /// Deletes others of the account until it keeps to its bound, those first that were not touched for longest.
        async fn make_room(
            account: &AccountId,
            kept: ConversationId,
            most: u64,
            connection: &mut $connection,
        ) -> Result<(), sqlx::Error> {
            loop {
                let taken = sqlx::query(TAKEN).bind(account.as_str().to_owned()).fetch_one(&mut *connection);
                let surplus = taken.await?.try_get::<i64, _>("bytes")?.saturating_sub(whole(most));
                if surplus <= 0 || !delete_oldest(account, kept, surplus, connection).await? {
                    return Ok(());
                }
            }
        }

        /// Deletes until so many bytes are free, some conversations at a time; false where there are none.
        async fn delete_oldest(
            account: &AccountId,
            kept: ConversationId,
            bytes: i64,
            connection: &mut $connection,
        ) -> Result<bool, sqlx::Error> {
            let rows = of(OLDEST, account, kept).fetch_all(&mut *connection).await?;
            let mut free = 0;
            for row in &rows {
                if free >= bytes {
                    break;
                }
                free += row.try_get::<i64, _>("bytes")?;
                let id = ConversationId::from_bytes(sixteen(row, "id")?);
                run(of(DELETE, account, id), connection).await?;
            }
            Ok(!rows.is_empty())
        }

        fn conversation(row: &$row) -> Result<StoredConversation, sqlx::Error> {
            let episode = row.try_get::<Option<&str>, _>("episode")?;
            Ok(StoredConversation {
                id: ConversationId::from_bytes(sixteen(row, "id")?),
                account: AccountId::new(row.try_get::<&str, _>("account")?),
                at: Timestamp(row.try_get("created_at")?),
                metadata: row.try_get::<String, _>("metadata")?.into(),
                episode: episode.map(|name| name.parse::<EpisodeId>().map_err(decode)).transpose()?,
            })
        }

        fn sixteen(row: &$row, column: &str) -> Result<[u8; 16], sqlx::Error> {
            row.try_get::<&[u8], _>(column)?.try_into().map_err(decode)
        }

        fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
            sqlx::Error::Decode(Box::new(error))
        }
    };
}

pub(in crate::storage) use record_statements;
