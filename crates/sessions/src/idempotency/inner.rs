//! What the handle to idempotency keys and the tickets share: the keys that run in this process, and the queue to the records.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Semaphore, mpsc, oneshot};

use stint_types::units::Timestamp;

use super::writer::PendingChange;
use super::{
    Fingerprint, IdempotencyChange, IdempotencyKey, IdempotencyStore, IdempotencyStoreError, Settings,
};

pub(super) struct IdempotencyInner {
    pub(super) settings: Settings,
    pub(super) store: Arc<dyn IdempotencyStore>,
    /// What runs in this process. Its entries are locked for moments and never across an await.
    pub(super) running: DashMap<IdempotencyKey, RunningKey>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) jobs: mpsc::Sender<PendingChange>,
}

/// A request that uses a key now.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningKey {
    pub(super) fingerprint: Fingerprint,
    /// True once the records are known to have nothing under the key: it is the first request. Until then it may be a repeat, of
    /// which there may be several at once.
    pub(super) is_first: bool,
}

impl IdempotencyInner {
    /// Records of requests that began before this do not count any more.
    pub(super) fn retention_cutoff(&self, now: Timestamp) -> Timestamp {
        now.before(self.settings.keep)
    }

    /// Queues a change. It is written whether or not anybody waits for the outcome.
    pub(super) fn submit(
        &self,
        change: IdempotencyChange,
    ) -> oneshot::Receiver<Result<bool, IdempotencyStoreError>> {
        let (reply, outcome) = oneshot::channel();
        if self.jobs.try_send(PendingChange { change, reply }).is_err() {
            tracing::error!("an idempotency key's record is not written: too much waits for the store");
        }
        outcome
    }
}
