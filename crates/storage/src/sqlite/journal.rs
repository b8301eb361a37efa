//! The ledger's journal in `SQLite`.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use crate::journal::{
    self, Cell, EXTENSIONS, METERINGS, OPEN_COLUMNS, RESERVATIONS, RESOLUTION_PARTS, RESOLUTIONS,
    SortedEntries, Table,
};
use crate::sql::{SqlDatabase, SqlDialect, SqlText, SqlValue, Statement, sql};
use stint_ledger::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, Journal, JournalEntry, JournalError,
    Seal, UsageQuery,
};
use stint_types::units::{EpisodeId, Timestamp};

use super::database::Sqlite;
use super::seals::seal;

/// Rows in one statement: the database takes 32,766 values, and a resolution has 23.
const INSERT_MAX: usize = 1024;

/// Begins with the open reservations, of which there are few.
pub(crate) static UNRESOLVED: LazyLock<SqlText> = LazyLock::new(|| {
    sql(
        "SELECT {}, \
                r.money + coalesce(sum(e.money), 0) AS money, \
                r.thinking + coalesce(sum(e.thinking), 0) AS thinking, \
                r.tool_calls + coalesce(sum(e.tool_calls), 0) AS tool_calls \
         FROM open_reservations o CROSS JOIN reservations r ON r.id = o.reservation \
         LEFT JOIN extensions e ON e.reservation = r.id \
         LEFT JOIN meterings m ON m.reservation = r.id \
             AND m.step = (SELECT max(step) FROM meterings WHERE reservation = r.id) \
         GROUP BY r.id ORDER BY r.id",
        &[&OPEN_COLUMNS],
    )
});

/// How the statements that insert rows begin.
static INTO_RESERVATIONS: LazyLock<SqlText> = LazyLock::new(|| into(&RESERVATIONS));
static INTO_EXTENSIONS: LazyLock<SqlText> = LazyLock::new(|| into(&EXTENSIONS));
static INTO_METERINGS: LazyLock<SqlText> = LazyLock::new(|| into(&METERINGS));
static INTO_RESOLUTION_PARTS: LazyLock<SqlText> = LazyLock::new(|| into(&RESOLUTION_PARTS));
static INTO_RESOLUTIONS: LazyLock<SqlText> = LazyLock::new(|| into(&RESOLUTIONS));

/// The journal in a `SQLite` file.
///
/// A future of `append` should be left to end; one that is dropped is rolled back before the next begins.
#[derive(Debug)]
pub struct SqliteJournal {
    database: Arc<Sqlite>,
}

impl SqliteJournal {
    /// The journal of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteJournal {
        SqliteJournal { database }
    }

    async fn insert_all(&self, entries: &[JournalEntry]) -> Result<(), sqlx::Error> {
        let sorted = SortedEntries::of(entries);
        let mut statements = Vec::with_capacity(5);
        insert((&RESERVATIONS, &*INTO_RESERVATIONS), &sorted.dispatched, &mut statements);
        insert((&EXTENSIONS, &*INTO_EXTENSIONS), &sorted.extended, &mut statements);
        insert((&METERINGS, &*INTO_METERINGS), &sorted.metered, &mut statements);
        let parts: Vec<_> = sorted.parts.iter().collect();
        insert((&RESOLUTION_PARTS, &*INTO_RESOLUTION_PARTS), &parts, &mut statements);
        insert((&RESOLUTIONS, &*INTO_RESOLUTIONS), &sorted.resolved, &mut statements);
        self.database.write_together(statements).await
    }

    async fn read_unresolved(&self) -> Result<Vec<DispatchEntry>, sqlx::Error> {
        let rows = self.database.reader().await?.fetch_all(Statement::new(&*UNRESOLVED)).await?;
        rows.iter().map(journal::dispatch_entry).collect()
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, JournalError>> {
        done.map_err(|source| self.database.failed(source)).boxed()
    }
}

impl Journal for SqliteJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.answer(self.insert_all(entries))
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.answer(self.read_unresolved())
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::spend_since(since, &mut *self.database.reader().await?).await })
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::spend_between(moments, self.database.reader().await?).await })
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.answer(async move {
            journal::episode_usage(account, episode, &mut *self.database.reader().await?).await
        })
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::balances(&mut *self.database.reader().await?).await })
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.answer(seal(&self.database, now))
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.answer(async move { journal::last_seal(&mut *self.database.reader().await?).await })
    }

    fn check_place(&self) -> Result<(), JournalError> {
        self.database.ensure_in_place().map_err(|source| self.database.failed(source))
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        self.answer(async move { journal::usage(query, &mut *self.database.slow_reader().await?).await })
    }
}

fn into<E>(table: &Table<E>) -> SqlText {
    let values = if table.is_for_unresolved { "SELECT new.* FROM (VALUES " } else { "VALUES " };
    sql("INSERT INTO {} ({}) {}", &[&table.name, &table.column_names(), &values])
}

/// Adds the statements that insert the rows of these entries, where they are not there yet.
fn insert<E>((table, into): (&Table<E>, &'static SqlText), entries: &[&E], statements: &mut Vec<Statement>) {
    statements.extend(entries.chunks(INSERT_MAX).map(|part| insertion((table, into), part)));
}

fn insertion<E>((table, into): (&Table<E>, &'static SqlText), entries: &[&E]) -> Statement {
    let mut values = Vec::with_capacity(entries.len() * table.columns.len());
    for entry in entries {
        values.extend(table.columns.iter().map(|column| match column.cell {
            Cell::Int(value) => SqlValue::Int(value(entry)),
            Cell::Text(value) => SqlValue::Text(value(entry)),
            Cell::Bytes(value) => SqlValue::Bytes(Some(value(entry))),
        }));
    }
    let after = if table.is_for_unresolved {
        ") AS new WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = new.column1) ON CONFLICT DO NOTHING"
    } else {
        " ON CONFLICT DO NOTHING"
    };
    Statement::with_rows(SqlDialect::Sqlite, into, table.columns.len(), values, after)
}
