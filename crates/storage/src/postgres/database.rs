//! An open database in PostgreSQL.

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgPool, PgPoolOptions};

use crate::fault::fault_of;
use crate::sql::{Session, SqlDatabase};
use crate::{PostgresSettings, StorageError};
use stint_ledger::JournalError;
use stint_types::units::Timestamp;

use super::address::{CONNECT_MAX, PostgresAddress};
use super::archive::PostgresArchive;
use super::clock::{read_clock, without_skew};
use super::migrations::migrate;

/// The journal's writer, the coordinator, the renewal of the lease, the listener; and some for the other stores.
const CONNECTIONS_MAX: u32 = 8;

/// Limits for statements and locks: nobody waits for the locks of a replica that was stopped in the middle of a transaction.
/// And notices that a table is there already are left out.
const SESSION: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("client_min_messages", "warning"),
];

/// A database that replicas share. Everything that is stored in it shares the connections.
pub struct Postgres {
    pub(super) pool: PgPool,
    /// Where it is, without the password.
    place: String,
    /// How long a replica's lease lasts without being renewed.
    pub(super) lease: Duration,
    /// When changed quota windows were last read, in microseconds since 1970.
    pub(super) changes_seen_micros: AtomicI64,
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

    /// The same without bringing tables up to date that an older version made.
    pub(crate) async fn open_as_it_is(settings: &PostgresSettings) -> Result<Postgres, StorageError> {
        match PostgresArchive::open(settings).await {
            Ok(_) | Err(StorageError::NoBooks(_)) => Postgres::open(settings).await,
            Err(error) => Err(error),
        }
    }

    /// The database's clock.
    pub(crate) async fn now(&self) -> Result<Timestamp, JournalError> {
        let read = async { read_clock(&mut *self.pool.acquire().await?).await };
        read.await.map_err(|source| self.failed(source))
    }

    /// For tests that look behind the journal and the coordinator.
    #[cfg(test)]
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(super) fn failed(&self, source: sqlx::Error) -> JournalError {
        let fault = fault_of(&source);
        JournalError::caused(format!("the database at {} failed", self.place), source).with_fault(fault)
    }
}

impl SqlDatabase for Postgres {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        async { Ok(Session::Postgres(self.pool.acquire().await?)) }.boxed()
    }

    fn slow_reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        self.reader()
    }

    fn writer(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>> {
        self.reader()
    }

    fn by_own_clock(&self, at: Timestamp) -> BoxFuture<'_, Result<Timestamp, sqlx::Error>> {
        async move {
            let there = read_clock(&mut *self.pool.acquire().await?).await?;
            Ok(without_skew(at, Timestamp::now(), there))
        }
        .boxed()
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.place)
    }
}
