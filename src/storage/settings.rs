//! Where things are kept, and how safely.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::StorageError;
use super::postgres::PostgresAddress;

/// Which database keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// None: the process takes it with it when it ends.
    Memory,
    /// A file of this machine, for one process.
    Sqlite(SqliteSettings),
    /// A server, for any number of processes.
    Postgres(PostgresSettings),
}

/// How a PostgreSQL server is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    /// Where it is, and who we are there.
    pub url: DatabaseUrl,
    /// How long a replica that is silent keeps its part of the limits.
    pub lease: Duration,
}

/// The address of a database. It has a password in it, so it does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address as it is written: `postgres://user:password@host:port/database`.
    pub fn new(url: impl Into<String>) -> DatabaseUrl {
        DatabaseUrl(url.into())
    }

    /// Sees whether it is one.
    ///
    /// # Errors
    /// When it is not; the error says how it is written.
    pub fn check(&self) -> Result<(), StorageError> {
        PostgresAddress::of(self).map(drop)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(..)")
    }
}

/// How a `SQLite` file is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSettings {
    /// The database file; its folder is created if need be.
    pub path: PathBuf,
    /// When a commit counts as done.
    pub synchronous: Synchronous,
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronous {
    /// When the disk has it: nothing settled is lost, whatever happens.
    #[default]
    Full,
    /// When the operating system has it: nothing is lost if the process dies; the last commits may be if the
    /// power fails.
    Normal,
}
