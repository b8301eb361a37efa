//! Where records become durable, behind a trait.

use futures_util::future::BoxFuture;

use stint_types::units::{RequestId, Timestamp};

use super::{IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, StoredAnswer, StoredBody};

/// A step in the life of a key.
#[derive(Debug, Clone)]
pub enum IdempotencyChange {
    /// A request begins to use it. That succeeds where there is no record, one of this very request, or one that was
    /// begun before `expired_before`, which it replaces. One of an earlier API key of the same name is not in its way.
    Begin {
        /// The key.
        key: IdempotencyKey,
        /// The request, which has not ended.
        record: IdempotencyRecord,
        /// Records that were begun before count no more.
        expired_before: Timestamp,
    },
    /// The request has ended. Its first end stands.
    End {
        /// The key.
        key: IdempotencyKey,
        /// The request that it belongs to.
        request: RequestId,
        /// How.
        end: IdempotencyOutcome,
    },
    /// Nothing was sent for the request: the key is free again.
    Forget {
        /// The key.
        key: IdempotencyKey,
        /// The request that it belonged to.
        request: RequestId,
    },
}

/// Durable records. `conformance` says in tests what one must do.
pub trait IdempotencyStore: Send + Sync {
    /// What is known of a key that was begun at `since` or later.
    fn find<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<IdempotencyRecord>, IdempotencyStoreError>>;

    /// Makes all changes durable in their order, or none; returns for each whether it took place. Writing them again is
    /// safe after any failure. A beginning is decided by the database alone, where replicas share one.
    fn write<'a>(
        &'a self,
        changes: &'a [IdempotencyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>>;

    /// Ends as interrupted what ran in a process that is gone; returns how many. It is called before anything begins. Where
    /// replicas share the records, only those are ended whose time was over before `now`.
    fn interrupt(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>>;

    /// Deletes the oldest of the records that were begun before, so many at most; returns how many.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>>;
}

/// A store that did not do its work. Whether the changes are in it is unknown; writing them again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct IdempotencyStoreError {
    message: String,
    #[source]
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

impl IdempotencyStoreError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> IdempotencyStoreError {
        IdempotencyStoreError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> IdempotencyStoreError {
        IdempotencyStoreError { message: message.into(), source: Some(std::sync::Arc::new(source)) }
    }
}

impl IdempotencyChange {
    /// The bytes of the answer in it.
    pub(super) fn size(&self) -> usize {
        match self {
            IdempotencyChange::End {
                end: IdempotencyOutcome::Answered(StoredAnswer { body: StoredBody::Whole(bytes), .. }),
                ..
            } => bytes.len(),
            IdempotencyChange::Begin { .. }
            | IdempotencyChange::End { .. }
            | IdempotencyChange::Forget { .. } => 0,
        }
    }

    /// Which key it is about.
    pub fn key(&self) -> &IdempotencyKey {
        match self {
            IdempotencyChange::Begin { key, .. }
            | IdempotencyChange::End { key, .. }
            | IdempotencyChange::Forget { key, .. } => key,
        }
    }
}
