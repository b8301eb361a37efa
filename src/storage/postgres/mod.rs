//! PostgreSQL, for any number of replicas: one pool of connections.

mod address;
mod answers;
mod archive;
mod changes;
mod conversations;
mod coordinator;
mod episodes;
mod journal;
mod keys;
mod quota_windows;
mod reclaim;
mod records;
mod responses;
mod restore;
mod rows;
mod seals;
mod stories;
mod sums;
mod tools;
mod verify;
mod window_opening;

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{PgConnection, SqlSafeStr};

pub(super) use address::PostgresAddress;
pub use answers::PostgresIdempotencyStore;
pub use archive::PostgresArchive;
pub use changes::ChangeListener;
pub use conversations::PostgresConversations;
pub use coordinator::PostgresCoordinator;
pub use episodes::PostgresEpisodes;
pub use journal::PostgresJournal;
pub use keys::PostgresKeyStore;
#[cfg(test)]
pub(super) use reclaim::RELEASE_EPISODE_LEASES;
pub use responses::PostgresResponses;
pub(super) use restore::restore;
pub use stories::PostgresHistoryStore;
#[cfg(test)]
pub(super) use window_opening::{STEPS, STEPS_BEFORE};

use address::CONNECT_MAX;

use super::{PostgresSettings, StorageError};
use crate::ledger::JournalError;
use crate::units::Timestamp;

/// The writer, the banker, the keeper of the lease, the listener; and some for whoever asks or listens too.
const CONNECTIONS_MAX: u32 = 8;

/// What a connection does not do for longer: nobody waits for the locks of a replica that was stopped in the middle
/// of a transaction. And that a table is there already is no news.
const SESSION: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("client_min_messages", "warning"),
];

/// Begins a transaction whose every statement sees the same.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The files of `migrations/postgres`, in their order. A file that was released never changes.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "ledger", include_str!("../../../migrations/postgres/0001_ledger.sql")),
    (2, "keys", include_str!("../../../migrations/postgres/0002_keys.sql")),
    (3, "idempotency", include_str!("../../../migrations/postgres/0003_idempotency.sql")),
    (4, "seals", include_str!("../../../migrations/postgres/0004_seals.sql")),
    (5, "bank_clock", include_str!("../../../migrations/postgres/0005_bank_clock.sql")),
    (6, "priority", include_str!("../../../migrations/postgres/0006_priority.sql")),
    (7, "history", include_str!("../../../migrations/postgres/0007_history.sql")),
    (8, "episodes", include_str!("../../../migrations/postgres/0008_episodes.sql")),
    (9, "runs", include_str!("../../../migrations/postgres/0009_runs.sql")),
    (10, "responses", include_str!("../../../migrations/postgres/0010_responses.sql")),
    (11, "readings", include_str!("../../../migrations/postgres/0011_readings.sql")),
    (12, "route_turns", include_str!("../../../migrations/postgres/0012_route_turns.sql")),
    (13, "conversations", include_str!("../../../migrations/postgres/0013_conversations.sql")),
    (14, "beside_turns", include_str!("../../../migrations/postgres/0014_beside_turns.sql")),
    (15, "parts", include_str!("../../../migrations/postgres/0015_parts.sql")),
    (16, "response_bytes", include_str!("../../../migrations/postgres/0016_response_bytes.sql")),
    (17, "episode_raises", include_str!("../../../migrations/postgres/0017_episode_raises.sql")),
    (18, "rates", include_str!("../../../migrations/postgres/0018_rates.sql")),
];

/// A database that replicas share. What is stored in it shares the connections.
pub struct Postgres {
    pool: PgPool,
    /// Where it is, without the password.
    place: String,
    /// How long a replica's lease lasts without being renewed.
    lease: Duration,
    /// When the purses were last looked at that have changed, in microseconds since 1970.
    changes_seen_micros: AtomicI64,
}

impl Postgres {
    /// Connects, and brings the tables up to date where needed.
    pub async fn open(settings: &PostgresSettings) -> Result<Postgres, StorageError> {
        let address = PostgresAddress::of(&settings.url)?;
        let mut connection = address.connect(&SESSION).await?;
        let (options, place) = (address.options(&SESSION), address.place);
        migrate(&mut connection, &place).await?;
        // A connection that died is found by the statement that fails on it, and that is tried again.
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX).acquire_timeout(CONNECT_MAX);
        let pool = pool.test_before_acquire(false).connect_lazy_with(options);
        Ok(Postgres { pool, place, lease: settings.lease, changes_seen_micros: AtomicI64::new(0) })
    }

    /// The database's clock.
    pub(super) async fn now(&self) -> Result<Timestamp, JournalError> {
        let read = async { reclaim::read_clock(&mut *self.pool.acquire().await?).await };
        read.await.map_err(|source| self.failed(source))
    }

    /// For tests that look behind the journal and the bank.
    #[cfg(test)]
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    fn failed(&self, source: sqlx::Error) -> JournalError {
        JournalError::caused(format!("the database at {} failed", self.place), source)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.place)
    }
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
