//! Where records become durable, behind a trait.

use futures_util::future::BoxFuture;

use crate::units::{RequestId, Timestamp};

use super::{Answer, Body, End, Record, Scope};

/// A step in the life of a key.
#[derive(Debug, Clone)]
pub enum Change {
    /// A request begins to use it. That succeeds where there is no record, one of this very request, or one that was
    /// begun before `dead_before`, which it replaces.
    Begin {
        /// The key.
        scope: Scope,
        /// The request, which has not ended.
        record: Record,
        /// Records that were begun before count no more.
        dead_before: Timestamp,
    },
    /// The request has ended. Its first end stands.
    End {
        /// The key.
        scope: Scope,
        /// The request that it belongs to.
        request: RequestId,
        /// How.
        end: End,
    },
    /// Nothing was sent for the request: the key is free again.
    Forget {
        /// The key.
        scope: Scope,
        /// The request that it belonged to.
        request: RequestId,
    },
}

/// Durable records. `conformance` says in tests what one must do.
pub trait Answers: Send + Sync {
    /// What is known of a key that was begun at `since` or later.
    fn find<'a>(
        &'a self,
        scope: &'a Scope,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Record>, AnswersError>>;

    /// Makes all changes durable in their order, or none; says of each whether it took place. Writing them again is
    /// safe after any failure. A beginning is decided by the database alone, where replicas share one.
    fn write<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Vec<bool>, AnswersError>>;

    /// Ends as interrupted what ran in a process that is gone; says how many. It is called before anything begins. Where
    /// replicas share the records, only those are ended whose time was over before `now`.
    fn interrupt(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, AnswersError>>;

    /// Deletes the oldest of the records that were begun before, so many at most; says how many.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, AnswersError>>;
}

/// A store that did not do its work. Whether the changes are in it is unknown; writing them again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct AnswersError {
    message: String,
    #[source]
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

impl AnswersError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> AnswersError {
        AnswersError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> AnswersError {
        AnswersError { message: message.into(), source: Some(std::sync::Arc::new(source)) }
    }
}

impl Change {
    /// The bytes of the answer in it.
    pub(super) fn size(&self) -> usize {
        match self {
            Change::End { end: End::Answered(Answer { body: Body::Whole(bytes), .. }), .. } => bytes.len(),
            Change::Begin { .. } | Change::End { .. } | Change::Forget { .. } => 0,
        }
    }

    /// Which key it is about.
    pub fn scope(&self) -> &Scope {
        match self {
            Change::Begin { scope, .. } | Change::End { scope, .. } | Change::Forget { scope, .. } => scope,
        }
    }
}
