//! Why a request gets no engine.

use std::time::Duration;

use thiserror::Error;

use crate::error::EngineError;

/// Why there is no engine to use.
#[derive(Debug, Clone, Error)]
pub enum LeaseRefusal {
    /// The process ends.
    #[error("the engine was stopped")]
    Stopped,
    /// The model could not be loaded.
    #[error("the model could not be loaded: {error}")]
    Failed {
        /// Why not.
        error: EngineError,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Models that are in use, or that stay loaded, have the memory.
    #[error("other models have the memory that this one needs")]
    NoRoom,
    /// Too many requests wait for it.
    #[error("too many requests wait for the model to be loaded")]
    Busy,
}
