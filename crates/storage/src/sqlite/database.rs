//! An open `SQLite` file.

use std::iter::once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use crate::fault::{FileGone, fault_of};
use crate::file::{DatabaseLock, FileId};
use crate::sql::{STATEMENTS_MAX, Session, SqlConnection, SqlDatabase, Statement};
use crate::{SqliteSettings, StorageError, Synchronous};
use stint_ledger::JournalError;

use super::archive::SqliteArchive;
use super::background_checkpoints::{BackgroundCheckpoints, LOG_PAGES_MAX};
use super::migrations::migrate;

/// Only backups and the operator's own tools hold the file beside us, for moments.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(5);

/// A `SQLite` file. Other processes are kept out of it until this is dropped. Everything that is stored in it shares it.
#[derive(Debug)]
pub struct Sqlite {
    writer: Mutex<SqliteConnection>,
    reader: Mutex<SqliteConnection>,
    /// For what may take long: no request waits for it.
    slow: Mutex<SqliteConnection>,
    checkpoints: BackgroundCheckpoints,
    /// True if the writer could not begin, or is not known to have ended: after some errors of the disk a connection never can
    /// begin again.
    is_writer_broken: AtomicBool,
    settings: SqliteSettings,
    /// Which file is open.
    identity: FileId,
    /// Dropped last, when the connections are gone.
    _lock: DatabaseLock,
}

impl Sqlite {
    /// Opens the file, making it and bringing its tables up to date where needed.
    pub async fn open(settings: &SqliteSettings) -> Result<Sqlite, StorageError> {
        let lock = DatabaseLock::take(&settings.path)?;
        Sqlite::open_locked(settings, lock).await
    }

    /// The same without bringing tables up to date that an older version made.
    pub(crate) async fn open_as_it_is(settings: &SqliteSettings) -> Result<Sqlite, StorageError> {
        let lock = DatabaseLock::take(&settings.path)?;
        match SqliteArchive::open(&settings.path).await {
            Ok(archive) => archive.close().await?,
            Err(StorageError::NoBooks(_)) => {}
            Err(error) => return Err(error),
        }
        Sqlite::open_locked(settings, lock).await
    }

    async fn open_locked(settings: &SqliteSettings, lock: DatabaseLock) -> Result<Sqlite, StorageError> {
        let path = &settings.path;
        let open_error = |source| StorageError::Open { path: path.clone(), source };
        let mut writer = connect(settings).await.map_err(open_error)?;
        migrate(&mut writer, path).await?;
        let reader = connect(settings).await.map_err(open_error)?;
        let slow = connect(settings).await.map_err(open_error)?;
        let checkpoints = BackgroundCheckpoints::new(connect(settings).await.map_err(open_error)?);
        let identity =
            FileId::of(path).map_err(|source| StorageError::Create { path: path.clone(), source })?;
        Ok(Sqlite {
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            slow: Mutex::new(slow),
            checkpoints,
            is_writer_broken: AtomicBool::new(false),
            settings: settings.clone(),
            identity,
            _lock: lock,
        })
    }

    /// Closes it, so that everything is in the one file.
    pub(super) async fn close(self) -> Result<(), StorageError> {
        let Sqlite {
            writer, reader, slow, checkpoints, settings: SqliteSettings { path, .. }, _lock, ..
        } = self;
        let closed = async {
            checkpoints.close().await?;
            slow.into_inner().close().await?;
            reader.into_inner().close().await.and(writer.into_inner().close().await)
        };
        closed.await.map_err(|source| StorageError::Open { path, source })
    }

    /// Whether the file that is open is still at its path: what is written into another one is lost at the next start.
    pub(super) fn ensure_in_place(&self) -> Result<(), sqlx::Error> {
        if self.identity.is_at(&self.settings.path) { Ok(()) } else { Err(FileGone::as_error()) }
    }

    /// The one connection that writes, held for one transaction at a time. It is replaced where the last could not begin.
    pub(crate) async fn lock_writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        let mut writer = self.writer.lock().await;
        self.ensure_in_place()?;
        if self.is_writer_broken.load(Ordering::Relaxed) {
            *writer = connect(&self.settings).await?;
            self.is_writer_broken.store(false, Ordering::Relaxed);
        }
        Ok(writer)
    }

    /// Runs statements in one transaction, of parameters without names. All of it is one trip to the connection's thread: a trip
    /// costs more than most statements do. One whose future is dropped is whole or not there.
    pub(super) async fn write_together(&self, statements: Vec<Statement>) -> Result<(), sqlx::Error> {
        let all = in_transaction(statements);
        let mut writer = self.lock_writer().await?;
        // Who leaves in the middle of it does not know how it ends, and the next has a connection of its own.
        self.is_writer_broken.store(true, Ordering::Relaxed);
        let written = writer.execute(all).await;
        if written.is_err() {
            // Some errors have ended the transaction already; there is none to roll back then.
            let _ = writer.execute(Statement::new("ROLLBACK")).await;
            writer.execute(Statement::new("BEGIN IMMEDIATE")).await?;
            writer.execute(Statement::new("ROLLBACK")).await?;
        }
        self.is_writer_broken.store(false, Ordering::Relaxed);
        self.checkpoints.committed();
        written.map(drop)
    }

    /// Moves what was written from the log into the file from time to time until then, so that no commit has to.
    pub(crate) async fn run_checkpoints(&self, until: impl Future<Output = ()>) {
        self.checkpoints.run(until).await;
    }

    /// Moves all that was written from the file beside it (`-wal`) into the one file, so that a copy of that has it.
    pub(crate) async fn checkpoint(&self) -> Result<(), JournalError> {
        let row = async {
            let _paused = self.checkpoints.pause().await;
            let checkpoint = Statement::new("PRAGMA wal_checkpoint(TRUNCATE)");
            let row = self.lock_writer().await?.fetch_optional(checkpoint).await?;
            row.map_or(Ok(0), |row| row.number("busy"))
        };
        match row.await.map_err(|source| self.failed(source))? {
            0 => Ok(()),
            _ => Err(JournalError::new(format!("another process reads {}", self.place()))),
        }
    }

    pub(super) fn failed(&self, source: sqlx::Error) -> JournalError {
        let fault = fault_of(&source);
        JournalError::caused(format!("the database {} failed", self.place()), source).with_fault(fault)
    }

    fn session<'d>(&'d self, connection: MutexGuard<'d, SqliteConnection>) -> Session<'d> {
        Session::Sqlite { connection, is_broken: &self.is_writer_broken }
    }
}

impl SqlDatabase for Sqlite {
    fn place(&self) -> String {
        self.settings.path.display().to_string()
    }

    fn reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        async { Ok(self.session(self.reader.lock().await)) }.boxed()
    }

    fn slow_reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        async { Ok(self.session(self.slow.lock().await)) }.boxed()
    }

    fn writer(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        async { Ok(self.session(self.lock_writer().await?)) }.boxed()
    }
}

/// These statements as one that is whole or not there. One alone is that by itself, with its triggers.
fn in_transaction(mut statements: Vec<Statement>) -> Statement {
    if statements.len() == 1
        && let Some(only) = statements.pop()
    {
        return only;
    }
    let (begin, commit) = (Statement::new("BEGIN IMMEDIATE"), Statement::new("COMMIT"));
    Statement::together(once(begin).chain(statements).chain(once(commit)).collect())
}

async fn connect(settings: &SqliteSettings) -> Result<SqliteConnection, sqlx::Error> {
    let synchronous = match settings.synchronous {
        Synchronous::Full => SqliteSynchronous::Full,
        Synchronous::Normal => SqliteSynchronous::Normal,
    };
    SqliteConnectOptions::new()
        .filename(&settings.path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        // What was deleted is overwritten: pages that are free would keep callers' texts.
        .pragma("secure_delete", "ON")
        .pragma("wal_autocheckpoint", LOG_PAGES_MAX)
        .busy_timeout(BUSY_MAX)
        .statement_cache_capacity(STATEMENTS_MAX)
        .disable_statement_logging()
        .connect()
        .await
}
