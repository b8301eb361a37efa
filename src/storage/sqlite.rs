//! The embedded default: one `SQLite` file in WAL mode, one connection that writes, one that reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlSafeStr, SqliteConnection};
use tokio::sync::Mutex;

use crate::ledger::{Dispatched, Entry, Journal, JournalError, Total};
use crate::units::Timestamp;

use super::file::Lock;
use super::rows::{
    SPENT, UNRESOLVED, dispatched, insert_dispatched, insert_extended, insert_resolved, inserts, total,
};
use super::{Settings, StorageError, Synchronous};

/// Only backups and the operator's own tools hold the file beside us, for moments.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// The files of `migrations/sqlite`, in their order. A file that was released never changes.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "ledger", include_str!("../../migrations/sqlite/0001_ledger.sql"))];

/// The journal in a `SQLite` file, which it keeps from other processes until it is dropped.
///
/// A future of `append` should be left to end; one that is dropped is rolled back before the next begins.
#[derive(Debug)]
pub struct SqliteJournal {
    writer: Mutex<SqliteConnection>,
    reader: Mutex<SqliteConnection>,
    path: PathBuf,
    /// Dropped last, when the connections are gone.
    _lock: Lock,
}

impl SqliteJournal {
    /// Opens the file, making it and bringing its tables up to date where needed.
    pub async fn open(settings: &Settings) -> Result<SqliteJournal, StorageError> {
        let path = &settings.path;
        let lock = Lock::take(path)?;
        let open_error = |source| StorageError::Open { path: path.clone(), source };
        let mut writer = connect(settings).await.map_err(open_error)?;
        migrate(&mut writer, path).await?;
        let reader = connect(settings).await.map_err(open_error)?;
        Ok(SqliteJournal {
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            path: path.clone(),
            _lock: lock,
        })
    }

    async fn insert(&self, entries: &[Entry]) -> Result<(), sqlx::Error> {
        let (mut sent, mut more, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                Entry::Dispatched(row) => sent.push(row),
                Entry::Extended(row) => more.push(row),
                Entry::Resolved(row) => ended.push(row),
            }
        }
        // What is referred to comes first.
        let statements = inserts(&sent, insert_dispatched)
            .chain(inserts(&more, insert_extended))
            .chain(inserts(&ended, insert_resolved));
        let mut writer = self.writer.lock().await;
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        for mut statement in statements {
            // Batches differ in length, so there is little to gain from keeping their statements.
            statement.build().persistent(false).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    fn failed(&self, source: sqlx::Error) -> JournalError {
        JournalError::caused(format!("the database {} failed", self.path.display()), source)
    }
}

impl Journal for SqliteJournal {
    fn append<'a>(&'a self, entries: &'a [Entry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move { self.insert(entries).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<Dispatched>, JournalError>> {
        async move {
            let rows = sqlx::query(UNRESOLVED).fetch_all(&mut *self.reader.lock().await).await;
            let read = rows.and_then(|rows| rows.iter().map(dispatched).collect());
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn spent(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<Total>, JournalError>> {
        async move {
            let rows = sqlx::query(SPENT).bind(since.0).fetch_all(&mut *self.reader.lock().await).await;
            let read = rows.and_then(|rows| rows.iter().map(total).collect());
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }
}

async fn connect(settings: &Settings) -> Result<SqliteConnection, sqlx::Error> {
    let synchronous = match settings.synchronous {
        Synchronous::Full => SqliteSynchronous::Full,
        Synchronous::Normal => SqliteSynchronous::Normal,
    };
    SqliteConnectOptions::new()
        .filename(&settings.path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        .busy_timeout(BUSY_MAX)
        .disable_statement_logging()
        .connect()
        .await
}

async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), StorageError> {
    let migrations = MIGRATIONS.iter().map(|&(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let path = path.to_owned();
    // Its `run` would make this future impossible to spawn ("not general enough").
    match Migrator::with_migrations(migrations.collect()).run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => Err(StorageError::Newer { path, version }),
        Err(MigrateError::Execute(source)) => Err(StorageError::Open { path, source }),
        Err(source) => Err(StorageError::Migrate { path, source }),
    }
}
