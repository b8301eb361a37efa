//! What idempotency keys stand for, in statements that both databases take.

/// The functions that read and write it, for one database.
macro_rules! answer_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty) => {
        use bytes::Bytes;
        use sqlx::Row;

        use crate::idempotency::{StoredAnswer, StoredBody, IdempotencyOutcome, Fingerprint};
        use crate::units::RequestId;

        const FIND: &str = "\
            SELECT fingerprint, request, begun_at, until, ended, status, headers, kept, body \
            FROM answers WHERE account = $1 AND key = $2 AND begun_at >= $3";

        /// Takes place where the row is new, is this request's own already, or counts no more.
        const BEGIN: &str = "\
            INSERT INTO answers (account, key, fingerprint, request, begun_at, until) VALUES ($1, $2, $3, $4, $5, $6) \
            ON CONFLICT (account, key) DO UPDATE SET \
                fingerprint = excluded.fingerprint, request = excluded.request, begun_at = excluded.begun_at, \
                until = excluded.until, ended = NULL, status = NULL, headers = NULL, kept = NULL, body = NULL \
            WHERE answers.begun_at < $7 OR answers.request = excluded.request";

        const END: &str = "\
            UPDATE answers SET ended = $4, status = $5, headers = $6, kept = $7, body = $8 \
            WHERE account = $1 AND key = $2 AND request = $3 AND ended IS NULL";

        const FORGET: &str = "DELETE FROM answers WHERE account = $1 AND key = $2 AND request = $3 AND ended IS NULL";

        const PURGE: &str = "\
            DELETE FROM answers WHERE (account, key) IN \
                (SELECT account, key FROM answers WHERE begun_at < $1 ORDER BY begun_at LIMIT $2)";

        type AnswerStatement = sqlx::query::Query<'static, $database, $arguments>;

        async fn run(statement: AnswerStatement, connection: &mut $connection) -> Result<u64, sqlx::Error> {
            Ok(statement.execute(connection).await?.rows_affected())
        }

        fn statement(change: &IdempotencyChange) -> Result<AnswerStatement, sqlx::Error> {
            let (text, request) = match change {
                IdempotencyChange::Begin { record, .. } => (BEGIN, record.request),
                IdempotencyChange::End { request, .. } => (END, *request),
                IdempotencyChange::Forget { request, .. } => (FORGET, *request),
            };
            let key = change.key();
            let query = sqlx::query(text).bind(key.account.as_str().to_owned()).bind(key.key.to_string());
            let request = request.as_bytes().to_vec();
            Ok(match change {
                IdempotencyChange::Begin { record, expired_before, .. } => {
                    let query = query.bind(record.fingerprint.0.to_vec()).bind(request);
                    query.bind(record.begun.0).bind(record.deadline.0).bind(expired_before.0)
                }
                IdempotencyChange::End { end, .. } => ended(query.bind(request), end)?,
                IdempotencyChange::Forget { .. } => query.bind(request),
            })
        }

        fn ended(query: AnswerStatement, end: &IdempotencyOutcome) -> Result<AnswerStatement, sqlx::Error> {
            let IdempotencyOutcome::Answered(answer) = end else {
                let (none, no_text, no_bytes) = (None::<i64>, None::<String>, None::<Vec<u8>>);
                return Ok(query.bind("interrupted").bind(none).bind(no_text.clone()).bind(no_text).bind(no_bytes));
            };
            let headers =
                serde_json::to_string(&answer.headers).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
            let (kept, body) = match &answer.body {
                StoredBody::Whole(bytes) => ("whole", Some(bytes.to_vec())),
                StoredBody::Streamed => ("streamed", None),
                StoredBody::TooLarge => ("too_large", None),
            };
            Ok(query.bind("answered").bind(i64::from(answer.status)).bind(headers).bind(kept).bind(body))
        }

        fn record(row: &$row) -> Result<IdempotencyRecord, sqlx::Error> {
            let end = match row.try_get::<Option<&str>, _>("ended")? {
                None => None,
                Some("answered") => Some(IdempotencyOutcome::Answered(answer(row)?)),
                Some(_) => Some(IdempotencyOutcome::Interrupted),
            };
            Ok(IdempotencyRecord {
                fingerprint: Fingerprint(bytes(row, "fingerprint")?),
                request: RequestId::from_bytes(bytes(row, "request")?),
                begun: Timestamp(row.try_get("begun_at")?),
                deadline: Timestamp(row.try_get("until")?),
                end,
            })
        }

        fn answer(row: &$row) -> Result<StoredAnswer, sqlx::Error> {
            let body = match row.try_get("kept")? {
                "whole" => StoredBody::Whole(Bytes::from(row.try_get::<Vec<u8>, _>("body")?)),
                "streamed" => StoredBody::Streamed,
                _ => StoredBody::TooLarge,
            };
            Ok(StoredAnswer {
                status: u16::try_from(row.try_get::<i64, _>("status")?).map_err(decode)?,
                headers: serde_json::from_str(row.try_get("headers")?).map_err(decode)?,
                body,
            })
        }

        fn bytes<const N: usize>(row: &$row, column: &str) -> Result<[u8; N], sqlx::Error> {
            row.try_get::<&[u8], _>(column)?.try_into().map_err(decode)
        }

        fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
            sqlx::Error::Decode(Box::new(error))
        }
    };
}

pub(super) use answer_statements;
