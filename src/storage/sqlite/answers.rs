//! What idempotency keys stand for, in `SQLite`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Connection, Row, SqliteConnection};

use crate::idempotency::{Answer, Answers, AnswersError, Body, Change, End, Fingerprint, Record, Scope};
use crate::units::{RequestId, Timestamp};

use super::Sqlite;

type Query = sqlx::query::Query<'static, sqlx::Sqlite, SqliteArguments>;

/// Records in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteAnswers {
    database: Arc<Sqlite>,
}

const FIND: &str = "\
    SELECT fingerprint, request, begun_at, until, ended, status, headers, kept, body \
    FROM answers WHERE account = ? AND key = ? AND begun_at >= ?";

/// Takes place where the row is new, is this request's own already, or counts no more.
const BEGIN: &str = "\
    INSERT INTO answers (account, key, fingerprint, request, begun_at, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
    ON CONFLICT (account, key) DO UPDATE SET \
        fingerprint = excluded.fingerprint, request = excluded.request, begun_at = excluded.begun_at, \
        until = excluded.until, ended = NULL, status = NULL, headers = NULL, kept = NULL, body = NULL \
    WHERE answers.begun_at < ?7 OR answers.request = excluded.request";

const END: &str = "\
    UPDATE answers SET ended = ?4, status = ?5, headers = ?6, kept = ?7, body = ?8 \
    WHERE account = ?1 AND key = ?2 AND request = ?3 AND ended IS NULL";

const FORGET: &str = "DELETE FROM answers WHERE account = ? AND key = ? AND request = ? AND ended IS NULL";

/// The file is one process's alone, so whatever runs in it ran in one that is gone.
const INTERRUPT: &str = "UPDATE answers SET ended = 'interrupted' WHERE ended IS NULL";

const PURGE: &str = "\
    DELETE FROM answers WHERE rowid IN \
        (SELECT rowid FROM answers WHERE begun_at < ? ORDER BY begun_at LIMIT ?)";

impl SqliteAnswers {
    /// The records of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteAnswers {
        SqliteAnswers { database }
    }

    async fn read(&self, scope: &Scope, since: Timestamp) -> Result<Option<Record>, sqlx::Error> {
        let query = sqlx::query(FIND).bind(scope.account.as_str()).bind(&*scope.key).bind(since.0);
        let row = query.fetch_optional(&mut *self.database.reader().await).await?;
        row.as_ref().map(record).transpose()
    }

    async fn commit(&self, changes: &[Change]) -> Result<Vec<bool>, sqlx::Error> {
        let statements = changes.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
        let mut writer = self.database.writer().await;
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        let mut took_place = Vec::with_capacity(statements.len());
        for statement in statements {
            took_place.push(run(statement, &mut transaction).await? > 0);
        }
        transaction.commit().await?;
        Ok(took_place)
    }

    async fn alone(&self, statement: Query) -> Result<u64, AnswersError> {
        let done = run(statement, &mut *self.database.writer().await).await;
        done.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: sqlx::Error) -> AnswersError {
        AnswersError::caused(format!("the database {} failed", self.database.path.display()), source)
    }
}

async fn run(statement: Query, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    Ok(statement.execute(connection).await?.rows_affected())
}

impl Answers for SqliteAnswers {
    fn find<'a>(
        &'a self,
        scope: &'a Scope,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Record>, AnswersError>> {
        async move { self.read(scope, since).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn write<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Vec<bool>, AnswersError>> {
        async move { self.commit(changes).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn interrupt(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, AnswersError>> {
        self.alone(sqlx::query(INTERRUPT)).boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, AnswersError>> {
        self.alone(sqlx::query(PURGE).bind(before.0).bind(i64::from(most))).boxed()
    }
}

fn statement(change: &Change) -> Result<Query, sqlx::Error> {
    let (text, request) = match change {
        Change::Begin { record, .. } => (BEGIN, record.request),
        Change::End { request, .. } => (END, *request),
        Change::Forget { request, .. } => (FORGET, *request),
    };
    let scope = change.scope();
    let query = sqlx::query(text).bind(scope.account.as_str().to_owned()).bind(scope.key.to_string());
    let request = request.as_bytes().to_vec();
    Ok(match change {
        Change::Begin { record, dead_before, .. } => {
            let query = query.bind(record.fingerprint.0.to_vec()).bind(request);
            query.bind(record.begun.0).bind(record.until.0).bind(dead_before.0)
        }
        Change::End { end, .. } => ended(query.bind(request), end)?,
        Change::Forget { .. } => query.bind(request),
    })
}

fn ended(query: Query, end: &End) -> Result<Query, sqlx::Error> {
    let End::Answered(answer) = end else {
        let (none, no_text, no_bytes) = (None::<i64>, None::<String>, None::<Vec<u8>>);
        return Ok(query.bind("interrupted").bind(none).bind(no_text.clone()).bind(no_text).bind(no_bytes));
    };
    let headers =
        serde_json::to_string(&answer.headers).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let (kept, body) = match &answer.body {
        Body::Whole(bytes) => ("whole", Some(bytes.to_vec())),
        Body::Streamed => ("streamed", None),
        Body::TooLarge => ("too_large", None),
    };
    Ok(query.bind("answered").bind(i64::from(answer.status)).bind(headers).bind(kept).bind(body))
}

fn record(row: &SqliteRow) -> Result<Record, sqlx::Error> {
    let end = match row.try_get::<Option<&str>, _>("ended")? {
        None => None,
        Some("answered") => Some(End::Answered(answer(row)?)),
        Some(_) => Some(End::Interrupted),
    };
    Ok(Record {
        fingerprint: Fingerprint(bytes(row, "fingerprint")?),
        request: RequestId::from_bytes(bytes(row, "request")?),
        begun: Timestamp(row.try_get("begun_at")?),
        until: Timestamp(row.try_get("until")?),
        end,
    })
}

fn answer(row: &SqliteRow) -> Result<Answer, sqlx::Error> {
    let body = match row.try_get("kept")? {
        "whole" => Body::Whole(Bytes::from(row.try_get::<Vec<u8>, _>("body")?)),
        "streamed" => Body::Streamed,
        _ => Body::TooLarge,
    };
    Ok(Answer {
        status: row.try_get("status")?,
        headers: serde_json::from_str(row.try_get("headers")?).map_err(decode)?,
        body,
    })
}

fn bytes<const N: usize>(row: &SqliteRow, column: &str) -> Result<[u8; N], sqlx::Error> {
    row.try_get::<&[u8], _>(column)?.try_into().map_err(decode)
}

fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}
