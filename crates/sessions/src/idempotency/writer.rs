//! The one writer: it commits whatever arrived while the previous commit ran.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::store_writer::StoreWriter;
use stint_types::units::Timestamp;

use super::{IdempotencyChange, IdempotencyStore, IdempotencyStoreError};

/// Changes in one commit, and the bytes of answers after which no more go into it: settlements wait for it.
const BATCH_MAX: usize = 64;
const BATCH_BYTES: usize = 4 << 20;

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

    /// What has arrived, as much of it as one commit takes.
    fn batch(first: PendingChange, arrived: &mut mpsc::Receiver<PendingChange>) -> IdempotencyBatch {
        let (mut bytes, mut batch) = (first.change.size(), vec![first]);
        while bytes < BATCH_BYTES && batch.len() < BATCH_MAX {
            let Ok(next) = arrived.try_recv() else { break };
            bytes += next.change.size();
            batch.push(next);
        }
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
