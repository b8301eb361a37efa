//! Load for a gateway: a scripted upstream that costs next to nothing, and callers that measure.
//!
//! Both are told by one scenario what to do, and know nothing of the gateway between them, which may be anybody's. Each runs on
//! one thread, so that a core can be given to both and another to the gateway.

pub mod drive;

pub mod upstream;

pub mod report;

pub mod histogram;
pub mod processes;
pub mod scenario;

use std::path::{Path, PathBuf};

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A scenario that cannot be understood.
    #[error("{path}: {source}", path = path.display())]
    Scenario {
        /// Where it stands.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// No runtime, or no listener.
    #[error("{0}")]
    Start(#[from] std::io::Error),
    /// The report could not be written as JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl LoadError {
    /// What went wrong with a file.
    pub fn file(path: &Path, source: std::io::Error) -> LoadError {
        LoadError::File { path: path.to_owned(), source }
    }
}
