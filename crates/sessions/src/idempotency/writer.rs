//! The one writer: it commits whatever arrived while the previous commit ran, and deletes what is too old.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

use super::{IdempotencyChange, IdempotencyStore, IdempotencyStoreError};

/// Changes in one commit, and the bytes of answers after which no more go into it: settlements wait for it.
const BATCH_MAX: usize = 64;
const BATCH_BYTES: usize = 4 << 20;
/// How often one commit is tried.
const TRIES_MAX: u32 = 6;
/// How long the first retry of a failed commit waits; each later one waits twice as long.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Records deleted at once: settlements wait for it. Where there were so many, more are deleted soon.
const PURGE_MAX: u32 = 64;
const PURGE_PAUSE: Duration = Duration::from_millis(50);

/// A change, and who wants to know what came of it.
pub(super) struct PendingChange {
    pub(super) change: IdempotencyChange,
    pub(super) reply: oneshot::Sender<Result<bool, IdempotencyStoreError>>,
}

pub(super) struct IdempotencyWriter {
    pub(super) store: Arc<dyn IdempotencyStore>,
    pub(super) keep: Duration,
    pub(super) sweep: Duration,
    pub(super) receiver: mpsc::Receiver<PendingChange>,
}

impl IdempotencyWriter {
    /// Runs until shutdown, and then until everything is written that arrived.
    pub(super) async fn run(mut self, tasks: Tasks) {
        let stopping = tasks.stopping();
        tokio::pin!(stopping);
        let mut purge = Instant::now() + self.sweep;
        let mut is_closing = false;
        loop {
            tokio::select! {
                first = self.receiver.recv() => match first {
                    None => return,
                    Some(first) => {
                        let batch = self.batch(first);
                        self.commit(batch).await;
                    }
                },
                () = &mut stopping, if !is_closing => {
                    is_closing = true;
                    self.receiver.close();
                }
                () = sleep_until(purge) => purge = Instant::now() + self.purge().await,
            }
        }
    }

    /// What has arrived, as much of it as one commit takes.
    fn batch(&mut self, first: PendingChange) -> Vec<PendingChange> {
        let (mut bytes, mut batch) = (first.change.size(), vec![first]);
        while bytes < BATCH_BYTES && batch.len() < BATCH_MAX {
            let Ok(next) = self.receiver.try_recv() else { break };
            bytes += next.change.size();
            batch.push(next);
        }
        batch
    }

    async fn commit(&self, batch: Vec<PendingChange>) {
        let (changes, replies): (Vec<IdempotencyChange>, Vec<_>) =
            batch.into_iter().map(|job| (job.change, job.reply)).unzip();
        let written = self.write(&changes).await;
        for (at, reply) in replies.into_iter().enumerate() {
            let one = written.as_ref().map(|done| done.get(at).copied().unwrap_or(false));
            // Nobody may be waiting any more.
            let _ = reply.send(one.map_err(Clone::clone));
        }
    }

    async fn write(&self, changes: &[IdempotencyChange]) -> Result<Vec<bool>, IdempotencyStoreError> {
        let mut wait = RETRY_MIN;
        for _ in 1..TRIES_MAX {
            match self.store.write(changes).await {
                Ok(written) => return Ok(written),
                Err(error) => report(&error),
            }
            sleep(wait).await;
            wait *= 2;
        }
        self.store.write(changes).await.inspect_err(report)
    }

    /// Deletes some of what is too old; returns when to look again.
    async fn purge(&self) -> Duration {
        let before = Timestamp::now().before(self.keep);
        match self.store.purge(before, PURGE_MAX).await {
            Ok(purged) if purged >= u64::from(PURGE_MAX) => return PURGE_PAUSE,
            Ok(_) => {}
            Err(error) => report(&error),
        }
        self.sweep
    }
}

fn report(error: &IdempotencyStoreError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, source, "the records of idempotency keys failed");
}
