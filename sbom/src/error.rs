//! Why there is no bill.

use std::path::PathBuf;

/// Why there is no bill.
#[derive(Debug, thiserror::Error)]
pub enum SbomError {
    /// Cargo did not tell.
    #[error("cargo tree does not tell what the binary is made of: {0}")]
    Cargo(String),
    /// A line of cargo's that has another form.
    #[error("a line of cargo tree has another form: {0:?}; write the reader anew for the cargo of today")]
    Line(String),
    /// The lock file is not there, or has another form.
    #[error("{file} cannot be read: {why}")]
    Lock {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A crate of the registry without a checksum.
    #[error("Cargo.lock has no checksum of {0}; run cargo update --workspace")]
    NoChecksum(String),
    /// It could not be made into JSON.
    #[error("the bill cannot be written as JSON: {0}")]
    Json(serde_json::Error),
    /// The file could not be written.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
