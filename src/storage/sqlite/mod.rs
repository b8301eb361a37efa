//! The embedded default: one `SQLite` file in WAL mode, one connection that writes, one that reads.

mod answers;
mod archive;
mod conversations;
mod episodes;
mod journal;
mod keys;
mod records;
mod responses;
mod restore;
mod rows;
mod seals;
mod stories;
mod sums;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlSafeStr, SqliteConnection, Transaction};
use tokio::sync::{Mutex, MutexGuard};

pub use answers::SqliteIdempotencyStore;
pub use archive::SqliteArchive;
pub use conversations::SqliteConversations;
pub use episodes::SqliteEpisodes;
pub use journal::SqliteJournal;
pub use keys::SqliteKeyStore;
pub use responses::SqliteResponses;
pub(super) use restore::restore;
pub use stories::SqliteHistoryStore;

use super::file::DatabaseLock;
use super::{SqliteSettings, StorageError, Synchronous};

/// Only backups and the operator's own tools hold the file beside us, for moments.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// The files of `migrations/sqlite`, in their order. A file that was released never changes.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "ledger", include_str!("../../../migrations/sqlite/0001_ledger.sql")),
    (2, "accounts", include_str!("../../../migrations/sqlite/0002_accounts.sql")),
    (3, "keys", include_str!("../../../migrations/sqlite/0003_keys.sql")),
    (4, "seals", include_str!("../../../migrations/sqlite/0004_seals.sql")),
    (5, "idempotency", include_str!("../../../migrations/sqlite/0005_idempotency.sql")),
    (6, "priority", include_str!("../../../migrations/sqlite/0006_priority.sql")),
    (7, "history", include_str!("../../../migrations/sqlite/0007_history.sql")),
    (8, "episodes", include_str!("../../../migrations/sqlite/0008_episodes.sql")),
    (9, "runs", include_str!("../../../migrations/sqlite/0009_runs.sql")),
    (10, "responses", include_str!("../../../migrations/sqlite/0010_responses.sql")),
    (11, "readings", include_str!("../../../migrations/sqlite/0011_readings.sql")),
    (12, "route_turns", include_str!("../../../migrations/sqlite/0012_route_turns.sql")),
    (13, "conversations", include_str!("../../../migrations/sqlite/0013_conversations.sql")),
    (14, "beside_turns", include_str!("../../../migrations/sqlite/0014_beside_turns.sql")),
    (15, "parts", include_str!("../../../migrations/sqlite/0015_parts.sql")),
    (16, "episode_raises", include_str!("../../../migrations/sqlite/0016_episode_raises.sql")),
    (17, "rates", include_str!("../../../migrations/sqlite/0017_rates.sql")),
];

/// What a start reads.
#[cfg(test)]
pub(super) const READ_AT_START: [&str; 4] =
    [rows::UNRESOLVED, super::books::BETWEEN, super::books::BALANCES, super::books::STEPS];

/// A `SQLite` file, which is kept from other processes until this is dropped. What is stored in it shares it.
#[derive(Debug)]
pub struct Sqlite {
    writer: Mutex<SqliteConnection>,
    reader: Mutex<SqliteConnection>,
    /// For what may take long: nobody's request waits for it.
    slow: Mutex<SqliteConnection>,
    /// True where the writer could not begin: after some errors of the disk a connection never can again.
    is_distrusted: AtomicBool,
    settings: SqliteSettings,
    /// Dropped last, when the connections are gone.
    _lock: DatabaseLock,
}

impl Sqlite {
    /// Opens the file, making it and bringing its tables up to date where needed.
    pub async fn open(settings: &SqliteSettings) -> Result<Sqlite, StorageError> {
        let path = &settings.path;
        let lock = DatabaseLock::take(path)?;
        let open_error = |source| StorageError::Open { path: path.clone(), source };
        let mut writer = connect(settings).await.map_err(open_error)?;
        migrate(&mut writer, path).await?;
        let reader = connect(settings).await.map_err(open_error)?;
        let slow = connect(settings).await.map_err(open_error)?;
        Ok(Sqlite {
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            slow: Mutex::new(slow),
            is_distrusted: AtomicBool::new(false),
            settings: settings.clone(),
            _lock: lock,
        })
    }

    /// Closes it, so that all is in the one file.
    async fn close(self) -> Result<(), StorageError> {
        let Sqlite { writer, reader, slow, settings: SqliteSettings { path, .. }, _lock, .. } = self;
        let closed = async {
            slow.into_inner().close().await?;
            reader.into_inner().close().await.and(writer.into_inner().close().await)
        };
        closed.await.map_err(|source| StorageError::Open { path, source })
    }

    /// The one connection that writes; a new one, where the last could not begin. Held for one transaction at a time.
    pub(super) async fn writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        let mut writer = self.writer.lock().await;
        if self.is_distrusted.load(Ordering::Relaxed) {
            *writer = connect(&self.settings).await?;
            self.is_distrusted.store(false, Ordering::Relaxed);
        }
        Ok(writer)
    }

    /// Begins to write.
    async fn begin<'w>(
        &self,
        writer: &'w mut SqliteConnection,
    ) -> Result<Transaction<'w, sqlx::Sqlite>, sqlx::Error> {
        let begun = writer.begin_with("BEGIN IMMEDIATE").await;
        if begun.is_err() {
            self.is_distrusted.store(true, Ordering::Relaxed);
        }
        begun
    }

    /// The connection that reads beside it what may take long: use, and what a seal covers.
    async fn slow_reader(&self) -> MutexGuard<'_, SqliteConnection> {
        self.slow.lock().await
    }

    /// The connection that reads beside it.
    async fn reader(&self) -> MutexGuard<'_, SqliteConnection> {
        self.reader.lock().await
    }
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
