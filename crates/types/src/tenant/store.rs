//! Where keys, the terms of accounts and the log of who changed them are kept, behind a trait.

use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;

use super::{AuditEntry, AuditRecord, KeyStoreChange, KeyStoreState, StoreVersion};

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

/// Keeps keys and terms, and the audit log. Several processes may share one.
pub trait KeyStore: fmt::Debug + Send + Sync {
    /// All that is kept, as it was at one moment.
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>>;

    /// How often it has changed; what is asked now and then, to learn of others' changes.
    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>>;

    /// Makes all changes or none, durably; none where something has changed since `seen`. No two keys that are not
    /// revoked have one account, and no secret belongs to two keys: such changes fail. The entries are appended to the audit
    /// log with the changes, or not at all.
    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>>;

    /// Appends entries to the audit log that no change here goes with.
    fn append_audit<'a>(&'a self, entries: &'a [AuditEntry]) -> BoxFuture<'a, Result<(), KeyStoreError>>;

    /// So many of the latest entries at most, the newest first, each before that number.
    fn read_audit(
        &self,
        before: Option<u64>,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<AuditRecord>, KeyStoreError>>;
}

impl KeyStoreError {
    /// A failure of that store, with its reason.
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> KeyStoreError {
        KeyStoreError::Failed { what: what.into(), source: source.into() }
    }
}
