//! A file's books in a server's database.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row, SqliteConnection};

use crate::postgres::{CellKind, ImportedTable, RESERVATIONS, TABLES};
use crate::{Database, StorageError, restore};
use stint_sessions::agent::conversations::conformance::conforms as conversations_conform;
use stint_sessions::{agent, history, idempotency};
use stint_types::tenant;
use stint_types::units::Money;

use super::fixture::BooksFixture;
use super::keep_books;
use crate::tests::patiently;

/// What a server's database has of its own, or what it makes of the other rows.
const NOT_COPIED: [&str; 9] = [
    "_sqlx_migrations",
    "admin_changes_head",
    "conversation_bytes",
    "keys_version",
    "purses",
    "replicas",
    "response_bytes",
    "slices",
    "uses",
];
const NOT_COPIED_COLUMNS: [(&str, &str); 2] = [("reservations", "epoch"), ("resolutions", "transaction")];

fn tables() -> impl Iterator<Item = &'static ImportedTable> {
    std::iter::once(&RESERVATIONS).chain(TABLES)
}

/// A file with rows in every table: whatever the conformance of each store leaves there.
async fn full() -> BooksFixture {
    let fixture = BooksFixture::file();
    let database = patiently(async || Database::open(&fixture.settings()).await).await;
    tenant::conformance::conforms(&*database.keys()).await;
    keep_books(&*database.journal()).await;
    idempotency::conformance::conforms(&*database.idempotency()).await;
    agent::stored::conformance::conforms(&*database.responses()).await;
    conversations_conform(&*database.conversations()).await;
    agent::conformance::conforms(&*database.episodes()).await;
    history::conformance::conforms(&*database.history()).await;
    drop(database);
    fixture.keep_changes(3).await;
    fill_empty(&mut sqlite(&fixture).await).await;
    fixture
}

/// Some suites delete all that they made. Then a row of any content will do.
async fn fill_empty(connection: &mut SqliteConnection) {
    for table in TABLES {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM {}", table.name));
        let count: i64 = sqlx::query_scalar(count).fetch_one(&mut *connection).await.unwrap();
        if count == 0 {
            let cells: Vec<&str> = table.columns.iter().map(|(_, kind)| some_cell(*kind)).collect();
            let insert =
                format!("INSERT INTO {} ({}) VALUES ({})", table.name, names(table), cells.join(", "));
            sqlx::query(AssertSqlSafe(insert)).execute(&mut *connection).await.unwrap();
        }
    }
}

fn names(table: &ImportedTable) -> String {
    table.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn some_cell(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Int => "1",
        CellKind::Text => "'word'",
        CellKind::Bytes => "zeroblob(16)",
        CellKind::Float => "0.25",
    }
}

async fn sqlite(fixture: &BooksFixture) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(fixture.path("stint.db")).connect().await.unwrap()
}

async fn server(fixture: &BooksFixture) -> PgConnection {
    PgConnection::connect(fixture.url()).await.unwrap()
}

/// A query that gives each row as one text.
fn as_text(table: &ImportedTable, cell: impl Fn(&str, CellKind) -> String) -> String {
    let cells: Vec<String> = table.columns.iter().map(|(name, kind)| cell(name, *kind)).collect();
    format!("SELECT {} AS cells FROM {}", cells.join(" || '|' || "), table.name)
}

async fn in_file(table: &ImportedTable, connection: &mut SqliteConnection) -> Vec<String> {
    let text = as_text(table, |name, kind| match kind {
        CellKind::Bytes => format!("iif(\"{name}\" IS NULL, '-', lower(hex(\"{name}\")))"),
        CellKind::Float => format!("coalesce(printf('%.9f', \"{name}\"), '-')"),
        CellKind::Int | CellKind::Text => format!("coalesce(CAST(\"{name}\" AS TEXT), '-')"),
    });
    let mut rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(connection).await.unwrap();
    rows.sort();
    rows
}

async fn in_server(table: &ImportedTable, connection: &mut PgConnection) -> Vec<String> {
    let text = as_text(table, |name, kind| match kind {
        CellKind::Bytes => format!("coalesce(encode(\"{name}\", 'hex'), '-')"),
        CellKind::Float => format!("coalesce(\"{name}\"::numeric(30, 9)::text, '-')"),
        CellKind::Int | CellKind::Text => format!("coalesce(\"{name}\"::text, '-')"),
    });
    let mut rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(connection).await.unwrap();
    rows.sort();
    rows
}

#[tokio::test]
async fn a_file_is_restored_into_a_server_row_by_row() {
    let (file, target) = (full().await, BooksFixture::server());
    let restored = patiently(async || restore(&file.path("stint.db"), &target.settings(), false).await).await;
    assert_eq!(restored.report, file.verify().await);
    let (open, seals, changes) = (restored.report.open, restored.report.seals, restored.report.changes);
    assert!((open, seals) == (1, 2) && changes >= 3, "{:?}", restored.report);
    let (mut from, mut to) = (sqlite(&file).await, server(&target).await);
    for table in tables() {
        let rows = in_file(table, &mut from).await;
        assert!(!rows.is_empty(), "nothing stands in {}", table.name);
        assert_eq!(rows, in_server(table, &mut to).await, "{}", table.name);
    }
    for table in ["conversation_bytes", "response_bytes"] {
        let sum = format!("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM {table}");
        let before: i64 = sqlx::query_scalar(AssertSqlSafe(sum.clone())).fetch_one(&mut from).await.unwrap();
        let after: i64 = sqlx::query_scalar(AssertSqlSafe(sum)).fetch_one(&mut to).await.unwrap();
        assert_eq!(before, after, "{table}");
    }
    nothing_is_left_beside(&file);
}

fn nothing_is_left_beside(file: &BooksFixture) {
    let folder = file.path("");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.contains("importing")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn the_books_go_on_in_the_server() {
    let (file, target) = (full().await, BooksFixture::server());
    let before =
        patiently(async || restore(&file.path("stint.db"), &target.settings(), false).await).await.report;
    let waiting = "SELECT count(*) FROM reservations v JOIN replicas r USING (epoch) \
                   WHERE NOT r.is_over AND r.expires_at < bank_clock()";
    let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut server(&target).await).await.unwrap();
    assert_eq!(waiting, 1, "the first gateway posts what the last one left open");
    let journal = target.journal().await;
    keep_books(&*journal).await;
    let after = target.verify().await;
    assert_eq!(after.differences, Vec::<String>::new());
    assert_eq!(after.resolutions, before.resolutions + 5);
    assert!(after.spent > before.spent && before.spent > Money::ZERO);
    let keys = Database::open(&target.settings()).await.unwrap().keys();
    let loaded = keys.load().await.unwrap();
    let database = patiently(async || Database::open(&file.settings()).await).await;
    assert_eq!(loaded, database.keys().load().await.unwrap());
}

#[tokio::test]
async fn a_file_that_is_wrong_leaves_the_server_empty() {
    let (file, target) = (BooksFixture::file(), BooksFixture::server());
    keep_books(&*file.journal().await).await;
    file.tamper("UPDATE resolutions SET money = 1 WHERE number = 1").await;
    let refused =
        patiently(async || match restore(&file.path("stint.db"), &target.settings(), false).await {
            Err(StorageError::Wrong { first, .. }) => Ok(first),
            other => other.map(|restored| restored.place),
        });
    assert_ne!(refused.await, target.url());
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
    let left: i64 = sqlx::query_scalar(left).fetch_one(&mut server(&target).await).await.unwrap();
    assert_eq!(left, 0);
    nothing_is_left_beside(&file);
}

#[tokio::test]
async fn a_file_that_a_gateway_has_open_is_not_moved() {
    let (file, target) = (BooksFixture::file(), BooksFixture::server());
    let journal = file.journal().await;
    keep_books(&*journal).await;
    let refused = restore(&file.path("stint.db"), &target.settings(), false).await.unwrap_err().to_string();
    assert!(refused.starts_with("another stint process uses"), "{refused}");
    drop(journal);
    patiently(async || restore(&file.path("stint.db"), &target.settings(), false).await).await;
}

#[tokio::test]
async fn tables_without_a_row_count_as_nothing_and_books_are_left_alone() {
    let (file, target) = (BooksFixture::file(), BooksFixture::server());
    keep_books(&*file.journal().await).await;
    // As an attempt leaves them that was broken off.
    drop(target.journal().await);
    patiently(async || restore(&file.path("stint.db"), &target.settings(), false).await).await;
    let before = target.verify().await;
    let refused = restore(&file.path("stint.db"), &target.settings(), false).await.unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    assert_eq!(target.verify().await, before);
}

#[tokio::test]
async fn a_database_with_functions_of_somebody_else_is_not_empty() {
    let (file, target) = (BooksFixture::file(), BooksFixture::server());
    keep_books(&*file.journal().await).await;
    let made = "CREATE FUNCTION of_somebody() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    sqlx::raw_sql(made).execute(&mut server(&target).await).await.unwrap();
    let restored =
        patiently(async || match restore(&file.path("stint.db"), &target.settings(), false).await {
            Err(StorageError::NotEmpty(place)) => Ok(place),
            other => other.map(|restored| restored.place),
        });
    restored.await;
    let there: i32 =
        sqlx::query_scalar("SELECT of_somebody()").fetch_one(&mut server(&target).await).await.unwrap();
    assert_eq!(there, 1);
}

/// A migration that adds a column or a table must say here what becomes of it.
#[tokio::test]
async fn every_column_of_both_schemas_is_copied_or_named() {
    let (file, target) = (BooksFixture::file(), BooksFixture::server());
    drop((file.journal().await, target.journal().await));
    let listed: BTreeMap<(String, String), &str> = tables()
        .flat_map(|table| {
            table.columns.iter().map(|(name, kind)| ((table.name.to_owned(), (*name).to_owned()), kind))
        })
        .map(|(place, kind)| {
            let kind = match kind {
                CellKind::Int => "bigint",
                CellKind::Text => "text",
                CellKind::Bytes => "bytea",
                CellKind::Float => "double precision",
            };
            (place, kind)
        })
        .collect();
    let columns = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns \
                   WHERE table_schema = 'public'";
    let rows = sqlx::query(columns).fetch_all(&mut server(&target).await).await.unwrap();
    let there: BTreeMap<(String, String), String> = rows
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .filter(|(place, _)| is_copied(place))
        .collect();
    let there: BTreeMap<_, _> = there.iter().map(|(place, kind)| (place.clone(), kind.as_str())).collect();
    assert_eq!(listed, there, "PostgreSQL");
    let columns = "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
                   WHERE m.type = 'table' AND m.name NOT IN ('open_reservations', 'sqlite_sequence')";
    let rows = sqlx::query(columns).fetch_all(&mut sqlite(&file).await).await.unwrap();
    let there: BTreeSet<(String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).filter(is_copied).collect();
    assert_eq!(listed.into_keys().collect::<BTreeSet<_>>(), there, "SQLite");
}

fn is_copied((table, column): &(String, String)) -> bool {
    !NOT_COPIED.contains(&table.as_str()) && !NOT_COPIED_COLUMNS.contains(&(table, column))
}
