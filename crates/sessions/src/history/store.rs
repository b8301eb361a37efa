//! Where stories and what was learned are kept, behind a trait.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use stint_types::catalog::Verdict;
use stint_types::units::{RequestId, Timestamp};

use super::{RequestRecord, WritableRecord};

/// One process that learns, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(Arc<str>);

impl ReplicaId {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "two new ids differ, a default would not")]
    pub fn new() -> ReplicaId {
        ReplicaId(RequestId::new().to_string().replacen("req_", "replica_", 1).into())
    }

    /// The one of that name.
    pub fn named(name: &str) -> ReplicaId {
        ReplicaId(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one process had learned when it last saved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaState {
    /// Which process.
    pub replica: ReplicaId,
    /// When it was saved.
    pub at: Timestamp,
    /// True if that was its last word.
    pub is_final: bool,
    /// What it had learned, as its module writes it.
    pub state: String,
}

/// Durable stories. `conformance` says in tests what one must do.
pub trait HistoryStore: Send + Sync {
    /// Keeps stories with their verdicts, all or none. Keeping one again changes nothing.
    fn insert<'a>(
        &'a self,
        stories: &'a [Arc<WritableRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>>;

    /// The story of a request that was decided at `since` or later.
    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>>;

    /// Keeps a verdict, whether or not its story is there yet; returns which one of the same source it replaces.
    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>>;

    /// When the latest of those stories was decided that are beyond the latest `most`; nothing if there are no more.
    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>>;

    /// Deletes the oldest stories that were decided before, and verdicts of before, so many of each at most; returns how
    /// many stories.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>>;

    /// What every process had learned that nobody has taken over.
    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>>;

    /// Keeps what a process has learned in place of what it had before, and in place of what others left, if all of that is
    /// still there as it was; else nothing changes. Says whether it was.
    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        in_place_of: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>>;

    /// Forgets what a process had learned, where it cannot be read.
    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>>;
}

/// A store that did not do its work. Whether the changes are in it is unknown; writing them again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct HistoryStoreError {
    message: String,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl HistoryStoreError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> HistoryStoreError {
        HistoryStoreError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> HistoryStoreError {
        HistoryStoreError { message: message.into(), source: Some(Arc::new(source)) }
    }
}
