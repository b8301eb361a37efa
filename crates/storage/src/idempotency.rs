//! The store of idempotency keys: the table `answers` of either database.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use stint_sessions::idempotency::{
    Fingerprint, IdempotencyChange, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, IdempotencyStore,
    IdempotencyStoreError, StoredAnswer, StoredBody,
};
use stint_types::units::Timestamp;

use super::sql::{SqlDatabase, SqlDialect, SqlRow, Statement, decode_error};

const FIND: &str = "\
    SELECT fingerprint, request, begun_at, until, ended, status, headers, kept, body \
    FROM answers WHERE account = $1 AND key = $2 AND begun_at >= $3 AND (key_id IS NULL OR key_id = $4)";

/// Takes place where the row is new, has expired, belongs to this request already, or to an earlier API key of the same name.
const BEGIN: &str = "\
    INSERT INTO answers (account, key, request, fingerprint, begun_at, until, key_id) VALUES ($1, $2, $3, $4, $5, $6, $8) \
    ON CONFLICT (account, key) DO UPDATE SET \
        fingerprint = excluded.fingerprint, request = excluded.request, begun_at = excluded.begun_at, \
        until = excluded.until, ended = NULL, status = NULL, headers = NULL, kept = NULL, body = NULL, \
        key_id = excluded.key_id \
    WHERE answers.begun_at < $7 OR answers.request = excluded.request OR answers.key_id <> excluded.key_id";

const END: &str = "\
    UPDATE answers SET ended = $4, status = $5, headers = $6, kept = $7, body = $8 \
    WHERE account = $1 AND key = $2 AND request = $3 AND ended IS NULL";

const FORGET: &str = "DELETE FROM answers WHERE account = $1 AND key = $2 AND request = $3 AND ended IS NULL";

const PURGE: &str = "\
    DELETE FROM answers WHERE (account, key) IN \
        (SELECT account, key FROM answers WHERE begun_at < $1 ORDER BY begun_at LIMIT $2)";

/// A file belongs to one process. What it says is running ran in a process that is gone.
const INTERRUPT_ALL: &str = "UPDATE answers SET ended = 'interrupted' WHERE ended IS NULL";

/// Another replica may be running it, until its deadline at the latest.
const INTERRUPT_LATE: &str = "UPDATE answers SET ended = 'interrupted' WHERE ended IS NULL AND until < $1";

/// Records of idempotency keys in a database.
#[derive(Debug)]
pub(super) struct SqlIdempotencyStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlIdempotencyStore {
    pub(super) fn new(database: Arc<dyn SqlDatabase>) -> SqlIdempotencyStore {
        SqlIdempotencyStore { database }
    }

    async fn read(
        &self,
        key: &IdempotencyKey,
        since: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, sqlx::Error> {
        let find = Statement::new(FIND).bind(&key.account).bind(&*key.key).bind(since).bind(key.owner);
        let row = self.database.reader().await?.fetch_optional(find).await?;
        row.as_ref().map(record).transpose()
    }

    async fn commit(&self, changes: &[IdempotencyChange]) -> Result<Vec<bool>, sqlx::Error> {
        let statements = changes.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let mut took_place = Vec::with_capacity(statements.len());
        for statement in statements {
            took_place.push(transaction.execute(statement).await? > 0);
        }
        transaction.commit().await?;
        Ok(took_place)
    }

    async fn interrupt_running(&self, now: Timestamp) -> Result<u64, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let statement = match writer.dialect() {
            SqlDialect::Sqlite => Statement::new(INTERRUPT_ALL),
            SqlDialect::Postgres => Statement::new(INTERRUPT_LATE).bind(now),
        };
        writer.execute(statement).await
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, IdempotencyStoreError>> {
        done.map_err(|source| IdempotencyStoreError::caused(self.database.failure(), source)).boxed()
    }
}

impl IdempotencyStore for SqlIdempotencyStore {
    fn find<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<IdempotencyRecord>, IdempotencyStoreError>> {
        self.answer(self.read(key, since))
    }

    fn write<'a>(
        &'a self,
        changes: &'a [IdempotencyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>> {
        self.answer(self.commit(changes))
    }

    fn interrupt(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.answer(self.interrupt_running(now))
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.answer(async move {
            let before = self.database.by_own_clock(before).await?;
            let purge = Statement::new(PURGE).bind(before).bind(most);
            self.database.writer().await?.execute(purge).await
        })
    }
}

fn statement(change: &IdempotencyChange) -> Result<Statement, sqlx::Error> {
    let (sql, request) = match change {
        IdempotencyChange::Begin { record, .. } => (BEGIN, record.request),
        IdempotencyChange::End { request, .. } => (END, *request),
        IdempotencyChange::Forget { request, .. } => (FORGET, *request),
    };
    let key = change.key();
    let statement = Statement::new(sql).bind(&key.account).bind(&*key.key).bind(request);
    match change {
        IdempotencyChange::Begin { record, expired_before, .. } => {
            let statement = statement.bind(&record.fingerprint.0[..]).bind(record.begun);
            Ok(statement.bind(record.deadline).bind(*expired_before).bind(key.owner))
        }
        IdempotencyChange::End { end, .. } => bind_outcome(statement, end),
        IdempotencyChange::Forget { .. } => Ok(statement),
    }
}

fn bind_outcome(statement: Statement, outcome: &IdempotencyOutcome) -> Result<Statement, sqlx::Error> {
    let IdempotencyOutcome::Answered(answer) = outcome else {
        let statement = statement.bind("interrupted").bind(None::<i64>);
        return Ok(statement.bind(None::<&str>).bind(None::<&str>).bind(None::<&[u8]>));
    };
    let headers =
        serde_json::to_string(&answer.headers).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let (kept, body) = match &answer.body {
        StoredBody::Whole(bytes) => ("whole", Some(&bytes[..])),
        StoredBody::Streamed => ("streamed", None),
        StoredBody::TooLarge => ("too_large", None),
    };
    Ok(statement.bind("answered").bind(i64::from(answer.status)).bind(headers).bind(kept).bind(body))
}

fn record(row: &SqlRow) -> Result<IdempotencyRecord, sqlx::Error> {
    let end = match row.get::<Option<&str>>("ended")? {
        None => None,
        Some("answered") => Some(IdempotencyOutcome::Answered(answer(row)?)),
        Some(_) => Some(IdempotencyOutcome::Interrupted),
    };
    Ok(IdempotencyRecord {
        fingerprint: Fingerprint(row.bytes("fingerprint")?),
        request: row.request("request")?,
        begun: row.time("begun_at")?,
        deadline: row.time("until")?,
        end,
    })
}

fn answer(row: &SqlRow) -> Result<StoredAnswer, sqlx::Error> {
    let body = match row.get("kept")? {
        "whole" => StoredBody::Whole(Bytes::from(row.get::<Vec<u8>>("body")?)),
        "streamed" => StoredBody::Streamed,
        _ => StoredBody::TooLarge,
    };
    Ok(StoredAnswer {
        status: u16::try_from(row.get::<i64>("status")?).map_err(decode_error)?,
        headers: serde_json::from_str(row.get("headers")?).map_err(decode_error)?,
        body,
    })
}
