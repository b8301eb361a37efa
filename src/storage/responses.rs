//! Responses that callers may come back to, in statements that both databases take.

/// The functions that read and write them, for one database.
macro_rules! response_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty, $unlocked:literal) => {
        use sqlx::Row;

        use crate::units::EpisodeId;

        /// A response that is there already stays as it is.
        const KEEP: &str = "\
            INSERT INTO responses (account, id, stored_at, previous, episode, input, output, told, bytes) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (account, id) DO NOTHING";

        const TAKEN: &str = "SELECT bytes FROM response_bytes WHERE account = $1";

        // What another deletes just now is left to it.
        const OLDEST: &str = concat!(
            "\
            SELECT id, bytes FROM responses WHERE account = $1 AND id <> $2 ORDER BY stored_at, id LIMIT 64",
            $unlocked,
        );

        const FIND: &str = "\
            SELECT account, id, stored_at, previous, episode, input, output, told FROM responses \
            WHERE account = $1 AND id = $2 AND stored_at >= $3";

        const CHAIN: &str = "\
            WITH RECURSIVE chain (id, previous, depth, total) AS ( \
                SELECT id, previous, 1, bytes FROM responses WHERE account = $1 AND id = $2 AND stored_at >= $3 \
                UNION ALL \
                SELECT link.id, link.previous, chain.depth + 1, chain.total + link.bytes \
                FROM chain JOIN responses link ON link.account = $1 AND link.id = chain.previous \
                WHERE link.stored_at >= $3 AND chain.total <= $4) \
            SELECT link.account, link.id, link.stored_at, link.previous, link.episode, link.input, link.output, link.told \
            FROM chain JOIN responses link ON link.account = $1 AND link.id = chain.id ORDER BY chain.depth";

        const DELETE: &str = "DELETE FROM responses WHERE account = $1 AND id = $2";

        const PURGE: &str = concat!(
            "\
            DELETE FROM responses WHERE (account, id) IN \
                (SELECT account, id FROM responses WHERE stored_at < $1 ORDER BY stored_at, id LIMIT $2",
            $unlocked,
            ")",
        );

        type ResponseStatement = sqlx::query::Query<'static, $database, $arguments>;

        async fn run(statement: ResponseStatement, connection: &mut $connection) -> Result<u64, sqlx::Error> {
            Ok(statement.execute(connection).await?.rows_affected())
        }

        async fn write_response(
            response: &StoredResponse,
            account_max: u64,
            connection: &mut $connection,
        ) -> Result<(), sqlx::Error> {
            run(kept(response), connection).await?;
            let most = i64::try_from(account_max).unwrap_or(i64::MAX);
            loop {
                let taken = sqlx::query(TAKEN).bind(response.account.as_str().to_owned());
                let taken: i64 = taken.fetch_one(&mut *connection).await?.try_get("bytes")?;
                if taken <= most || !delete_oldest(response, taken - most, connection).await? {
                    return Ok(());
                }
            }
        }

        /// Deletes old responses of the account until so many bytes are free, some of them at a time; false where there
        /// are none.
        async fn delete_oldest(
            new: &StoredResponse,
            bytes: i64,
            connection: &mut $connection,
        ) -> Result<bool, sqlx::Error> {
            let oldest = sqlx::query(OLDEST).bind(new.account.as_str().to_owned()).bind(new.id.as_bytes().to_vec());
            let rows = oldest.fetch_all(&mut *connection).await?;
            let mut free = 0;
            for row in &rows {
                if free >= bytes {
                    break;
                }
                free += row.try_get::<i64, _>("bytes")?;
                run(delete(&new.account, id_of(row, "id")?), connection).await?;
            }
            Ok(!rows.is_empty())
        }

        async fn read_response(
            account: &AccountId,
            id: RequestId,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<StoredResponse>, sqlx::Error> {
            let query = sqlx::query(FIND).bind(account.as_str().to_owned()).bind(id.as_bytes().to_vec());
            let row = query.bind(since.0).fetch_optional(connection).await?;
            row.as_ref().map(response).transpose()
        }

        async fn read_chain(
            account: &AccountId,
            id: RequestId,
            since: Timestamp,
            bytes_max: u64,
            connection: &mut $connection,
        ) -> Result<Option<ResponseChain>, sqlx::Error> {
            let query = sqlx::query(CHAIN).bind(account.as_str().to_owned()).bind(id.as_bytes().to_vec());
            let query = query.bind(since.0).bind(i64::try_from(bytes_max).unwrap_or(i64::MAX));
            let rows = query.fetch_all(connection).await?;
            let responses = rows.iter().map(response).collect::<Result<Vec<_>, _>>()?;
            Ok((!responses.is_empty()).then_some(ResponseChain { responses }))
        }

        fn delete(account: &AccountId, id: RequestId) -> ResponseStatement {
            sqlx::query(DELETE).bind(account.as_str().to_owned()).bind(id.as_bytes().to_vec())
        }

        fn purge(before: Timestamp, most: u32) -> ResponseStatement {
            sqlx::query(PURGE).bind(before.0).bind(i64::from(most))
        }

        fn kept(response: &StoredResponse) -> ResponseStatement {
            let StoredResponse { id, account, at, previous, episode, input, output, body } = response;
            let query = sqlx::query(KEEP).bind(account.as_str().to_owned()).bind(id.as_bytes().to_vec());
            let query = query.bind(at.0).bind(previous.map(|id| id.as_bytes().to_vec()));
            let query = query.bind(episode.as_ref().map(|episode| episode.as_str().to_owned()));
            let query = query.bind(input.to_string()).bind(output.to_string()).bind(body.to_string());
            query.bind(i64::try_from(response.size()).unwrap_or(i64::MAX))
        }

        fn response(row: &$row) -> Result<StoredResponse, sqlx::Error> {
            let text = |column| row.try_get::<String, _>(column).map(String::into_boxed_str);
            let previous = row.try_get::<Option<Vec<u8>>, _>("previous")?;
            let episode = row.try_get::<Option<String>, _>("episode")?;
            Ok(StoredResponse {
                id: id_of(row, "id")?,
                account: AccountId::new(row.try_get::<&str, _>("account")?),
                at: Timestamp(row.try_get("stored_at")?),
                previous: previous.map(|_| id_of(row, "previous")).transpose()?,
                episode: episode.map(|name| name.parse::<EpisodeId>().map_err(decode)).transpose()?,
                input: text("input")?,
                output: text("output")?,
                body: text("told")?,
            })
        }

        fn id_of(row: &$row, column: &str) -> Result<RequestId, sqlx::Error> {
            let bytes = row.try_get::<&[u8], _>(column)?;
            Ok(RequestId::from_bytes(bytes.try_into().map_err(decode)?))
        }

        fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
            sqlx::Error::Decode(Box::new(error))
        }
    };
}

/// The trait for a store of one database, whose own are its connections (`reader`, `writer`) and its transactions (`commit`).
macro_rules! response_store {
    ($store:ty) => {
        use futures_util::FutureExt;
        use futures_util::future::BoxFuture;

        use crate::agent::stored::{ResponseStore, ResponsesError};

        impl $store {
            async fn alone(&self, statement: ResponseStatement) -> Result<u64, ResponsesError> {
                let done = async { run(statement, &mut *self.writer().await?).await };
                done.await.map_err(|source| self.failed(source))
            }
        }

        impl ResponseStore for $store {
            fn keep<'a>(
                &'a self,
                response: &'a StoredResponse,
                account_max: u64,
            ) -> BoxFuture<'a, Result<(), ResponsesError>> {
                let kept = self.commit(response, account_max);
                async move { kept.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn find<'a>(
                &'a self,
                account: &'a AccountId,
                id: RequestId,
                since: Timestamp,
            ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
                let found =
                    async move { read_response(account, id, since, &mut *self.reader().await?).await };
                found.map(|found| found.map_err(|source| self.failed(source))).boxed()
            }

            fn chain<'a>(
                &'a self,
                account: &'a AccountId,
                id: RequestId,
                since: Timestamp,
                bytes_max: u64,
            ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>> {
                let found = async move {
                    read_chain(account, id, since, bytes_max, &mut *self.reader().await?).await
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
    };
}

pub(super) use {response_statements, response_store};
