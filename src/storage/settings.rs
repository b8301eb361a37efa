//! Where the journal is kept, and how safely.

use std::path::PathBuf;

use serde::Deserialize;

/// How the journal is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The database file; its folder is created if need be. `:memory:` keeps nothing.
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
