//! PostgreSQL, for any number of replicas: one pool of connections.

mod answers;
mod bank;
mod burial;
mod changes;
mod journal;
mod keys;
mod opening;
mod purses;
mod rows;
mod usage;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, PgConnection, SqlSafeStr};

pub use answers::PostgresAnswers;
pub use bank::PostgresBank;
pub use changes::Changes;
pub use journal::PostgresJournal;
pub use keys::PostgresKeyStore;

use super::{PostgresSettings, StorageError};

/// The writer, the banker, the keeper of the lease, the listener; and some for whoever asks or listens too.
const CONNECTIONS_MAX: u32 = 8;

/// How long a connection may take to come about.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What a connection does not do for longer: nobody waits for the locks of a replica that was stopped in the middle
/// of a transaction.
const SESSION: [(&str, &str); 3] =
    [("statement_timeout", "10s"), ("lock_timeout", "5s"), ("idle_in_transaction_session_timeout", "3s")];

/// The files of `migrations/postgres`, in their order. A file that was released never changes.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "ledger", include_str!("../../../migrations/postgres/0001_ledger.sql")),
    (2, "keys", include_str!("../../../migrations/postgres/0002_keys.sql")),
    (3, "idempotency", include_str!("../../../migrations/postgres/0003_idempotency.sql")),
    (5, "bank_clock", include_str!("../../../migrations/postgres/0005_bank_clock.sql")),
];

/// A database that replicas share. What is stored in it shares the connections.
pub struct Postgres {
    pool: PgPool,
    /// Where it is, without the password.
    place: String,
    /// How long a replica's lease lasts without being renewed.
    lease: Duration,
    /// When the purses were last looked at that have changed, in microseconds since 1970.
    heard: AtomicI64,
}

impl Postgres {
    /// Connects, and brings the tables up to date where needed.
    pub async fn open(settings: &PostgresSettings) -> Result<Postgres, StorageError> {
        let url = settings.url.as_str();
        let is_ours = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        let options = if is_ours { PgConnectOptions::from_str(url).ok() } else { None };
        let options = options.ok_or(StorageError::Url)?;
        let options = options.application_name("stint").options(SESSION).disable_statement_logging();
        let place = place(&options);
        let connected = tokio::time::timeout(CONNECT_MAX, options.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err(late()));
        let mut connection =
            connected.map_err(|source| StorageError::Connect { place: place.clone(), source })?;
        migrate(&mut connection, &place).await?;
        // A connection that died is found by the statement that fails on it, and that is tried again.
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX).acquire_timeout(CONNECT_MAX);
        let pool = pool.test_before_acquire(false).connect_lazy_with(options);
        Ok(Postgres { pool, place, lease: settings.lease, heard: AtomicI64::new(0) })
    }

    /// For tests that look behind the journal and the bank.
    #[cfg(test)]
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    fn failed(&self, source: sqlx::Error) -> crate::ledger::JournalError {
        crate::ledger::JournalError::caused(format!("the database at {} failed", self.place), source)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.place)
    }
}

fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("{}:{}/{database}", options.get_host(), options.get_port())
}

fn late() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time"))
}

async fn migrate(connection: &mut PgConnection, place: &str) -> Result<(), StorageError> {
    let migrations = MIGRATIONS.iter().map(|&(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let place = place.to_owned();
    // Replicas that start at once take turns: it holds a lock of the database meanwhile.
    match Migrator::with_migrations(migrations.collect()).run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => {
            Err(StorageError::Newer { path: place.into(), version })
        }
        Err(source) => Err(StorageError::Migrate { path: place.into(), source }),
    }
}
