//! Where keys and the terms of accounts are kept, behind a trait.

use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;

use super::{KeyStoreChange, KeyStoreState, StoreVersion};

/// Why keys could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// Somebody else changed something since.
    #[error("the keys were changed by somebody else at the same time; try again")]
    Conflict,
    /// The store failed.
    #[error("{what}")]
    Failed {
        /// Which, and at what.
        what: String,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Keeps keys and terms. Several processes may share one.
pub trait KeyStore: fmt::Debug + Send + Sync {
    /// All that is kept, as it was at one moment.
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>>;

    /// How often it has changed; what is asked now and then, to learn of others' changes.
    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>>;

    /// Makes all changes or none, durably; none where something has changed since `seen`. No two keys that are not
    /// revoked have one account, and no secret belongs to two keys: such changes fail.
    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>>;
}

impl KeyStoreError {
    /// A failure of that store, with its reason.
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> KeyStoreError {
        KeyStoreError::Failed { what: what.into(), source: source.into() }
    }
}
