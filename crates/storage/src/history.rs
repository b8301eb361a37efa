//! The store of request records, verdicts and learned states: the tables `stories`, `verdicts` and `learned` of either
//! database.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use stint_sessions::history::{
    HistoryStore, HistoryStoreError, ReplicaId, ReplicaState, RequestRecord, WritableRecord,
    read_stored_decision,
};
use stint_types::catalog::{Verdict, VerdictSource};
use stint_types::units::{Chance, RequestId, Timestamp};

use super::packed_record::{pack, unpack};
use super::sql::{
    SqlConnection, SqlDatabase, SqlDialect, SqlRow, SqlValue, Statement, ToSqlValue, decode_error, sql,
};

const INSERT: &str =
    "INSERT INTO stories (request, account, decided_at, decision, outcome, key_id, packed) VALUES ";
/// A record that is there already stays as it is.
const KEEP: &str = " ON CONFLICT (request) DO NOTHING";
/// So many values has a row, and so many rows a statement.
const COLUMNS: usize = 7;
const ROWS_MAX: usize = 1024;

const FIND: &str =
    "SELECT account, decision, outcome, key_id, packed FROM stories WHERE request = $1 AND decided_at >= $2";

const VERDICT_COLUMNS: &str = "request, source, at, success, weight";

/// Through the index alone.
const RETENTION_CUTOFF: &str = "SELECT decided_at FROM stories ORDER BY decided_at DESC LIMIT 1 OFFSET $1";

const PURGE: &str = "\
    DELETE FROM stories WHERE request IN \
        (SELECT request FROM stories WHERE decided_at < $1 ORDER BY decided_at LIMIT $2)";

const PURGE_VERDICTS: &str = "\
    DELETE FROM verdicts WHERE (request, source) IN \
        (SELECT request, source FROM verdicts WHERE at < $1 ORDER BY at LIMIT $2)";

const STATE_COLUMNS: &str = "replica, saved_at, has_left, state";

const STATE_VALUES: &str = "\
    VALUES ($1, $2, $3, $4) ON CONFLICT (replica) DO UPDATE SET \
        saved_at = excluded.saved_at, has_left = excluded.has_left, state = excluded.state";

const TAKE_OVER_STATE: &str = "DELETE FROM learned WHERE replica = $1 AND saved_at = $2";

const DELETE_STATE: &str = "DELETE FROM learned WHERE replica = $1";

/// Request records, verdicts and learned states in a database.
#[derive(Debug)]
pub(super) struct SqlHistoryStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlHistoryStore {
    pub(super) fn new(database: Arc<dyn SqlDatabase>) -> SqlHistoryStore {
        SqlHistoryStore { database }
    }

    async fn insert_records(&self, records: &[Arc<WritableRecord>]) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        for part in records.chunks(ROWS_MAX) {
            let dialect = transaction.dialect();
            let mut values = Vec::with_capacity(COLUMNS * part.len());
            for record in part {
                values.extend(row(record, dialect));
            }
            transaction.execute(Statement::with_rows(dialect, INSERT, COLUMNS, values, KEEP)).await?;
        }
        for verdict in records.iter().flat_map(|record| &record.record().verdicts) {
            // A verdict that came with its record does not replace a later one.
            let insert = verdict_insertion(verdict, "ON CONFLICT (request, source) DO NOTHING");
            transaction.execute(insert).await?;
        }
        transaction.commit().await
    }

    async fn write_verdict(&self, new: &Verdict) -> Result<Option<Verdict>, sqlx::Error> {
        let sql = sql("SELECT {} FROM verdicts WHERE request = $1 AND source = $2", &[&VERDICT_COLUMNS]);
        let find = Statement::new(sql).bind(new.id).bind(new.source.as_str());
        let replace = verdict_insertion(
            new,
            "ON CONFLICT (request, source) DO UPDATE SET \
             at = excluded.at, success = excluded.success, weight = excluded.weight",
        );
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let before = transaction.fetch_optional(find).await?;
        transaction.execute(replace).await?;
        transaction.commit().await?;
        before.as_ref().map(verdict).transpose()
    }

    async fn read_cutoff(&self, most: u32) -> Result<Option<Timestamp>, sqlx::Error> {
        let find = Statement::new(RETENTION_CUTOFF).bind(most);
        let row = self.database.reader().await?.fetch_optional(find).await?;
        row.map(|row| row.time("decided_at")).transpose()
    }

    async fn delete_before(&self, before: Timestamp, most: u32) -> Result<u64, sqlx::Error> {
        let purge = |sql| Statement::new(sql).bind(before).bind(most);
        let mut writer = self.database.writer().await?;
        let verdicts = writer.execute(purge(PURGE_VERDICTS)).await?;
        // While there is more of either, the next round comes soon.
        Ok(writer.execute(purge(PURGE)).await?.max(verdicts))
    }

    async fn read_states(&self) -> Result<Vec<ReplicaState>, sqlx::Error> {
        let find = Statement::new(sql("SELECT {} FROM learned", &[&STATE_COLUMNS]));
        let rows = self.database.reader().await?.fetch_all(find).await?;
        rows.iter().map(state).collect()
    }

    /// False if a state that was to be taken over has changed: then nothing is written.
    async fn replace_states(
        &self,
        own: &ReplicaState,
        replaced: &[ReplicaState],
    ) -> Result<bool, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        for state in replaced {
            let take_over = Statement::new(TAKE_OVER_STATE).bind(state.replica.as_str()).bind(state.at);
            if transaction.execute(take_over).await? != 1 {
                transaction.rollback().await?;
                return Ok(false);
            }
        }
        let save = sql("INSERT INTO learned ({}) {}", &[&STATE_COLUMNS, &STATE_VALUES]);
        let save = Statement::new(save).bind(own.replica.as_str()).bind(own.at);
        transaction.execute(save.bind(i64::from(own.is_final)).bind(own.state.clone())).await?;
        transaction.commit().await?;
        Ok(true)
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, HistoryStoreError>> {
        done.map_err(|source| HistoryStoreError::caused(self.database.failure(), source)).boxed()
    }
}

impl HistoryStore for SqlHistoryStore {
    fn insert<'a>(
        &'a self,
        records: &'a [Arc<WritableRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        self.answer(self.insert_records(records))
    }

    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>> {
        self.answer(async move { read_record(id, since, &mut *self.database.reader().await?).await })
    }

    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>> {
        self.answer(self.write_verdict(verdict))
    }

    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>> {
        self.answer(self.read_cutoff(most))
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>> {
        self.answer(self.delete_before(before, most))
    }

    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>> {
        self.answer(self.read_states())
    }

    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        in_place_of: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>> {
        self.answer(self.replace_states(own, in_place_of))
    }

    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        let delete = Statement::new(DELETE_STATE).bind(replica.as_str());
        self.answer(async move { self.database.writer().await?.execute(delete).await.map(drop) })
    }
}

async fn read_record(
    id: RequestId,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<RequestRecord>, sqlx::Error> {
    let find = Statement::new(FIND).bind(id).bind(since);
    let Some(row) = connection.fetch_optional(find).await? else { return Ok(None) };
    let sql = sql("SELECT {} FROM verdicts WHERE request = $1", &[&VERDICT_COLUMNS]);
    let verdicts = connection.fetch_all(Statement::new(sql).bind(id)).await?;
    let (decision, outcome) = texts(&row)?;
    let mut record = RequestRecord {
        account: row.account("account")?,
        key: row.parsed_or_null("key_id")?,
        decision: read_stored_decision(&decision).map_err(decode_error)?,
        outcome: serde_json::from_str(&outcome).map_err(decode_error)?,
        verdicts: Vec::new(),
    };
    for row in &verdicts {
        record.set_verdict(verdict(row)?);
    }
    Ok(Some(record))
}

/// The decision and the outcome.
fn texts(row: &SqlRow) -> Result<(String, String), sqlx::Error> {
    match row.get::<Option<&[u8]>>("packed")? {
        Some(packed) => unpack(packed).map_err(decode_error),
        None => Ok((row.get("decision")?, row.get("outcome")?)),
    }
}

/// PostgreSQL packs long texts by itself.
fn row(written: &WritableRecord, dialect: SqlDialect) -> [SqlValue; COLUMNS] {
    let RequestRecord { account, key, decision, .. } = &**written.record();
    let (decided, outcome) = (written.stored_decision(), written.stored_outcome());
    let (decided, outcome, packed) = match dialect {
        SqlDialect::Sqlite => (String::new(), "", Some(pack(decided, outcome))),
        SqlDialect::Postgres => (decided, outcome, None),
    };
    let (id, at) = (decision.id.to_sql(), decision.at.to_sql());
    [id, account.to_sql(), at, decided.to_sql(), outcome.to_sql(), key.to_sql(), packed.to_sql()]
}

fn verdict_insertion(verdict: &Verdict, on_conflict: &'static str) -> Statement {
    let sql =
        sql("INSERT INTO verdicts ({}) VALUES ($1, $2, $3, $4, $5) {}", &[&VERDICT_COLUMNS, &on_conflict]);
    let statement = Statement::new(sql).bind(verdict.id).bind(verdict.source.as_str()).bind(verdict.at);
    statement.bind(verdict.success.get()).bind(verdict.weight)
}

fn verdict(row: &SqlRow) -> Result<Verdict, sqlx::Error> {
    let word: &str = row.get("source")?;
    let source = VerdictSource::ALL.into_iter().find(|source| source.as_str() == word);
    Ok(Verdict {
        id: row.request("request")?,
        source: source.ok_or_else(|| decode_error(format!("no source {word:?}")))?,
        at: row.time("at")?,
        success: Chance::new(row.get("success")?),
        weight: row.get("weight")?,
    })
}

fn state(row: &SqlRow) -> Result<ReplicaState, sqlx::Error> {
    Ok(ReplicaState {
        replica: ReplicaId::named(row.get("replica")?),
        at: row.time("saved_at")?,
        is_final: row.get::<i64>("has_left")? != 0,
        state: row.get("state")?,
    })
}
