//! `ResponseStore`: the trait of a durable store of responses.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{ResponseChain, StoredResponse};

/// Durable responses. `conformance` says in tests what one must do.
pub trait ResponseStore: Send + Sync {
    /// Makes responses durable, all or none; what is there under an id stays. Beyond `account_max` bytes an account's oldest
    /// are deleted, the last of its new ones never.
    fn keep<'a>(
        &'a self,
        responses: &'a [StoredResponse],
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>>;

    /// A response of that account that was kept at `since` or later.
    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>>;

    /// The same with all that it continued, until one is not there, or `bytes_max` are exceeded.
    fn chain<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>>;

    /// Deletes a response of that account; false if there is none.
    fn delete<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
    ) -> BoxFuture<'a, Result<bool, ResponsesError>>;

    /// Deletes responses of that account, some at a time: those of that key, or all where none is named. Says how many; 0 once none
    /// is left.
    fn delete_of<'a>(
        &'a self,
        account: &'a AccountId,
        key: Option<KeyId>,
    ) -> BoxFuture<'a, Result<u64, ResponsesError>>;

    /// Deletes the oldest of those that were kept before, so many at most; returns how many.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>>;
}

/// A store that did not do its work. Whether the change is in it is unknown; making it again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ResponsesError {
    message: String,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl ResponsesError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> ResponsesError {
        ResponsesError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> ResponsesError {
        ResponsesError { message: message.into(), source: Some(Arc::new(source)) }
    }
}
