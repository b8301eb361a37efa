//! Where things are kept, and how safely.

use std::path::PathBuf;

use serde::Deserialize;

/// Which database keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settings {
    /// None: the process takes it with it when it ends.
    Memory,
    /// A file of this machine, for one process.
    Sqlite(SqliteSettings),
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
