//! Which database is used, and how.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::database_url::DatabaseUrl;

/// Which database keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// None: everything is gone when the process ends.
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
    /// How long a silent replica keeps its leases of the limits.
    pub lease: Duration,
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
