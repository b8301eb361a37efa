//! The one writer: it commits whatever arrived while the previous commit ran.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::store_writer::{StoreWriter, gather};
use stint_types::units::Timestamp;

use super::{IdempotencyChange, IdempotencyStore, IdempotencyStoreError};

/// A change, and who wants to know what came of it.
pub(super) struct PendingChange {
    pub(super) change: IdempotencyChange,
    pub(super) reply: oneshot::Sender<Result<bool, IdempotencyStoreError>>,
}

pub(super) struct IdempotencyWriter {
    pub(super) store: Arc<dyn IdempotencyStore>,
}

/// The changes of one commit, and who waits for each.
pub(super) struct IdempotencyBatch {
    changes: Vec<IdempotencyChange>,
    replies: Vec<oneshot::Sender<Result<bool, IdempotencyStoreError>>>,
}

impl StoreWriter for IdempotencyWriter {
    type Job = PendingChange;
    type Batch = IdempotencyBatch;
    type Written = Vec<bool>;
    type Error = IdempotencyStoreError;

    const FAILURE: &'static str = "the records of idempotency keys failed";

    fn batch(first: PendingChange, arrived: &mut mpsc::Receiver<PendingChange>) -> IdempotencyBatch {
        let batch = gather(first, arrived, |job| job.change.size());
        let (changes, replies) = batch.into_iter().map(|job| (job.change, job.reply)).unzip();
        IdempotencyBatch { changes, replies }
    }

    fn write<'a>(
        &'a self,
        batch: &'a IdempotencyBatch,
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>> {
        self.store.write(&batch.changes)
    }

    fn reply(batch: IdempotencyBatch, written: Result<Vec<bool>, IdempotencyStoreError>) {
        for (at, reply) in batch.replies.into_iter().enumerate() {
            let one = written.as_ref().map(|done| done.get(at).copied().unwrap_or(false));
            let _ = reply.send(one.map_err(Clone::clone));
        }
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        self.store.purge(before, most)
    }
}
