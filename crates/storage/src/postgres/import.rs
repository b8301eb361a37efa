//! Putting the books of a `SQLite` file into an empty database, so that a gateway which outgrew its file goes on where it was.

use std::path::Path;

use futures_util::TryStreamExt;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, PgConnection, Postgres, Row, Sqlite, SqliteConnection};

use crate::sql::{SqlText, sql};
use crate::sqlite::VerifiedCopy;
use crate::{PostgresSettings, StorageError, VerifyReport};

use super::archive::PostgresArchive;
use super::database;
use super::imported_tables::{CellKind, ImportedTable, RESERVATIONS, TABLES};
use super::restore::is_occupied;
use super::text::clean;
use super::verify::verify;

/// Rows go into the database in pieces of so many, or of so many bytes.
const ROWS_MAX: usize = 1000;
const BYTES_MAX: usize = 4 << 20;

/// A replica whose lease has expired. The first gateway that starts posts what it left open.
const DEAD_REPLICA: &str =
    "INSERT INTO replicas (name, expires_at) VALUES ('imported', '-infinity') RETURNING epoch";
/// New resolutions get higher numbers than those that were copied.
const NEXT_NUMBER: &str = "\
    SELECT setval(pg_get_serial_sequence('resolutions', 'number'), coalesce(max(number), 1), max(number) IS NOT NULL) \
    FROM resolutions";

/// Nothing is in these before the first gateway has started.
const HAS_NO_ROWS: &str = "\
    SELECT NOT EXISTS (SELECT 1 FROM replicas) AND NOT EXISTS (SELECT 1 FROM reservations) \
       AND NOT EXISTS (SELECT 1 FROM keys) AND NOT EXISTS (SELECT 1 FROM admin_changes)";

/// Copies everything from a verified copy of the file into an empty database, and verifies it there before it is committed. Returns where
/// that is, and what verifying it came to. An attempt that fails may leave our tables there, without a row; another one takes them.
///
/// # Errors
/// When the database is not empty, a gateway uses the file, its books are wrong, or a row cannot be copied.
pub(super) async fn import(
    file: &Path,
    settings: &PostgresSettings,
) -> Result<(String, VerifyReport), StorageError> {
    let mut copy = VerifiedCopy::of(file).await?;
    let mut target = PostgresArchive::open_any(settings).await?;
    let place = target.address().place.clone();
    if is_occupied(&mut target).await? && !has_empty_books(&mut target).await {
        return Err(StorageError::NotEmpty(place));
    }
    drop(database::Postgres::open(settings).await?);
    let expected = copy.report().clone();
    let copied = copy_books(&expected, copy.connection(), target.connection()).await;
    match copied.map_err(|source| StorageError::Import { path: file.to_owned(), source })? {
        Copied::Right => Ok((place, expected)),
        Copied::NotEmpty => Err(StorageError::NotEmpty(place)),
        Copied::Wrong { first, found } => Err(StorageError::Wrong { path: file.to_owned(), first, found }),
    }
}

/// Whether our tables are there, all of them, and no gateway ever wrote to them.
async fn has_empty_books(target: &mut PostgresArchive) -> bool {
    sqlx::query_scalar(HAS_NO_ROWS).fetch_one(target.connection()).await.unwrap_or(false)
}

/// What copying came to. All but the first leave the database as it was.
enum Copied {
    Right,
    NotEmpty,
    Wrong { first: String, found: usize },
}

/// Everything in one transaction, in which no gateway can begin.
async fn copy_books(
    expected: &VerifyReport,
    source: &mut SqliteConnection,
    target: &mut PgConnection,
) -> Result<Copied, sqlx::Error> {
    let mut target = target.begin().await?;
    sqlx::query("LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE").execute(&mut *target).await?;
    if !sqlx::query_scalar::<_, bool>(HAS_NO_ROWS).fetch_one(&mut *target).await? {
        return Ok(Copied::NotEmpty);
    }
    let resolved = sql(" WHERE id NOT IN (SELECT reservation FROM open_reservations)", &[]);
    copy_rows(&RESERVATIONS, &resolved, None, source, &mut target).await?;
    if expected.open > 0 {
        let epoch: i64 = sqlx::query_scalar(DEAD_REPLICA).fetch_one(&mut *target).await?;
        let open = sql(" WHERE id IN (SELECT reservation FROM open_reservations)", &[]);
        copy_rows(&RESERVATIONS, &open, Some(epoch), source, &mut target).await?;
    }
    for table in TABLES {
        copy_rows(table, &SqlText::default(), None, source, &mut target).await?;
    }
    copy_heads(source, &mut target).await?;
    sqlx::query(NEXT_NUMBER).execute(&mut *target).await?;
    // Or the first gateway would plan its statements without knowing how many rows there are.
    sqlx::query("ANALYZE").execute(&mut *target).await?;
    let report = verify(&mut target).await?;
    if report != *expected {
        let first = report.differences.first().cloned();
        let first = first.unwrap_or_else(|| "the copy has other sums than the file".to_owned());
        return Ok(Copied::Wrong { first, found: report.found.max(1) });
    }
    target.commit().await?;
    Ok(Copied::Right)
}

/// The tables of one row, which the new database has already.
async fn copy_heads(source: &mut SqliteConnection, target: &mut PgConnection) -> Result<(), sqlx::Error> {
    let version: i64 = sqlx::query_scalar("SELECT version FROM keys_version").fetch_one(&mut *source).await?;
    sqlx::query("UPDATE keys_version SET version = $1").bind(version).execute(&mut *target).await?;
    let head = sqlx::query("SELECT number, hash FROM admin_changes_head").fetch_one(source).await?;
    sqlx::query("UPDATE admin_changes_head SET number = $1, hash = $2")
        .bind(head.try_get::<i64, _>("number")?)
        .bind(head.try_get::<Vec<u8>, _>("hash")?)
        .execute(target)
        .await
        .map(drop)
}

/// Copies the rows of a table that a condition chooses, with an epoch where there is one.
async fn copy_rows(
    table: &ImportedTable,
    condition: &SqlText,
    epoch: Option<i64>,
    source: &mut SqliteConnection,
    target: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let select = sql("SELECT {} FROM {}{}", &[&names(table), &table.name, condition]);
    let mut rows = sqlx::query(select.into_driver::<Sqlite>()).fetch(source);
    let mut batch = RowBatch::of(table);
    while let Some(row) = rows.try_next().await? {
        batch.push(&row)?;
        if batch.is_full() {
            batch.insert(table, epoch, target).await?;
            batch = RowBatch::of(table);
        }
    }
    batch.insert(table, epoch, target).await
}

/// Some names of columns are words of SQL.
fn names(table: &ImportedTable) -> SqlText {
    SqlText::joined(table.columns.iter().map(|(name, _)| sql("\"{}\"", &[name])), ", ")
}

/// Rows of a table, column by column.
struct RowBatch {
    columns: Vec<Cells>,
    rows: usize,
    bytes: usize,
}

impl RowBatch {
    fn of(table: &ImportedTable) -> RowBatch {
        let columns = table.columns.iter().map(|(_, kind)| Cells::of(*kind)).collect();
        RowBatch { columns, rows: 0, bytes: 0 }
    }

    fn push(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        for (at, column) in self.columns.iter_mut().enumerate() {
            self.bytes += column.push(row, at)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    async fn insert(
        self,
        table: &ImportedTable,
        epoch: Option<i64>,
        target: &mut PgConnection,
    ) -> Result<(), sqlx::Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let numbers = self.columns.iter().enumerate();
        let arrays = numbers.map(|(at, column)| sql("${}::{}[]", &[&(at + 1), &column.of_postgres()]));
        let arrays = SqlText::joined(arrays, ", ");
        let (name, value) = match epoch {
            Some(epoch) => (", epoch", sql(", {}", &[&epoch])),
            None => ("", SqlText::default()),
        };
        let insert = sql(
            "INSERT INTO {} ({}{}) OVERRIDING SYSTEM VALUE SELECT *{} FROM UNNEST({})",
            &[&table.name, &names(table), &name, &value, &arrays],
        );
        let query = sqlx::query(insert.into_driver::<Postgres>());
        let query = self.columns.into_iter().fold(query, |query, column| column.bind(query));
        query.execute(target).await.map(drop)
    }
}

/// The cells of a column.
enum Cells {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Float(Vec<Option<f64>>),
}

impl Cells {
    fn of(kind: CellKind) -> Cells {
        match kind {
            CellKind::Int => Cells::Int(Vec::new()),
            CellKind::Text => Cells::Text(Vec::new()),
            CellKind::Bytes => Cells::Bytes(Vec::new()),
            CellKind::Float => Cells::Float(Vec::new()),
        }
    }

    fn of_postgres(&self) -> &'static str {
        match self {
            Cells::Int(_) => "bigint",
            Cells::Text(_) => "text",
            Cells::Bytes(_) => "bytea",
            Cells::Float(_) => "double precision",
        }
    }

    /// Takes a row's cell; returns its size in bytes.
    fn push(&mut self, row: &SqliteRow, at: usize) -> Result<usize, sqlx::Error> {
        Ok(match self {
            Cells::Int(cells) => {
                cells.push(row.try_get(at)?);
                8
            }
            Cells::Float(cells) => {
                cells.push(row.try_get(at)?);
                8
            }
            Cells::Text(cells) => {
                let text = row.try_get::<Option<&str>, _>(at)?.map(clean);
                let size = text.as_ref().map_or(0, String::len);
                cells.push(text);
                size
            }
            Cells::Bytes(cells) => {
                let bytes: Option<Vec<u8>> = row.try_get(at)?;
                let size = bytes.as_ref().map_or(0, Vec::len);
                cells.push(bytes);
                size
            }
        })
    }

    fn bind(self, query: Query<'_, Postgres, PgArguments>) -> Query<'_, Postgres, PgArguments> {
        match self {
            Cells::Int(cells) => query.bind(cells),
            Cells::Text(cells) => query.bind(cells),
            Cells::Bytes(cells) => query.bind(cells),
            Cells::Float(cells) => query.bind(cells),
        }
    }
}
