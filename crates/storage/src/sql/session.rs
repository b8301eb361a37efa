//! Connections that a store has for itself for a while, and transactions on them.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Connection, Sqlite, SqliteConnection};
#[cfg(feature = "postgres")]
use sqlx::{Postgres, pool::PoolConnection};
use tokio::sync::MutexGuard;

use super::connection::SqlConnection;

#[cfg(feature = "postgres")]
/// Begins a transaction of PostgreSQL whose every statement sees the same moment.
pub(crate) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A connection that others wait for until this is dropped.
pub(crate) enum Session<'d> {
    Sqlite {
        connection: MutexGuard<'d, SqliteConnection>,
        /// Set where a transaction that writes could not begin.
        is_broken: &'d AtomicBool,
    },
    #[cfg(feature = "postgres")]
    Postgres(PoolConnection<Postgres>),
}

/// A transaction; it is rolled back where it is dropped.
pub(crate) enum Transaction<'s> {
    Sqlite(sqlx::Transaction<'s, Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::Transaction<'s, Postgres>),
}

impl Session<'_> {
    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_>, sqlx::Error> {
        match self {
            Session::Sqlite { connection, is_broken } => {
                let begun = connection.begin_with("BEGIN IMMEDIATE").await;
                if begun.is_err() {
                    is_broken.store(true, Ordering::Relaxed);
                }
                begun.map(Transaction::Sqlite)
            }
            #[cfg(feature = "postgres")]
            Session::Postgres(connection) => connection.begin().await.map(Transaction::Postgres),
        }
    }

    /// Begins a transaction that reads. All its statements see what was committed at one moment.
    pub(crate) async fn snapshot(&mut self) -> Result<Transaction<'_>, sqlx::Error> {
        match self {
            Session::Sqlite { connection, .. } => connection.begin().await.map(Transaction::Sqlite),
            #[cfg(feature = "postgres")]
            Session::Postgres(connection) => {
                connection.begin_with(BEGIN_SNAPSHOT).await.map(Transaction::Postgres)
            }
        }
    }
}

impl Transaction<'_> {
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Transaction::Sqlite(transaction) => transaction.commit().await,
            #[cfg(feature = "postgres")]
            Transaction::Postgres(transaction) => transaction.commit().await,
        }
    }

    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        match self {
            Transaction::Sqlite(transaction) => transaction.rollback().await,
            #[cfg(feature = "postgres")]
            Transaction::Postgres(transaction) => transaction.rollback().await,
        }
    }
}

impl Deref for Session<'_> {
    type Target = dyn SqlConnection;

    fn deref(&self) -> &Self::Target {
        match self {
            Session::Sqlite { connection, .. } => &**connection,
            #[cfg(feature = "postgres")]
            Session::Postgres(connection) => &**connection,
        }
    }
}

impl DerefMut for Session<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Session::Sqlite { connection, .. } => &mut **connection,
            #[cfg(feature = "postgres")]
            Session::Postgres(connection) => &mut **connection,
        }
    }
}

impl Deref for Transaction<'_> {
    type Target = dyn SqlConnection;

    fn deref(&self) -> &Self::Target {
        match self {
            Transaction::Sqlite(transaction) => &**transaction,
            #[cfg(feature = "postgres")]
            Transaction::Postgres(transaction) => &**transaction,
        }
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Transaction::Sqlite(transaction) => &mut **transaction,
            #[cfg(feature = "postgres")]
            Transaction::Postgres(transaction) => &mut **transaction,
        }
    }
}
