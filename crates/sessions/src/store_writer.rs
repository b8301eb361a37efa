//! The one task that writes to a store: it writes what arrives, tries again what fails, and deletes what is too old.

use std::error::Error;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

/// How often one write is tried.
const TRIES_MAX: u32 = 6;
/// How long the first retry of a failed write waits; each later one waits twice as long.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Records deleted at once: settlements wait for it. Where there were so many, more are deleted soon.
const PURGE_MAX: u32 = 64;
const PURGE_PAUSE: Duration = Duration::from_millis(50);
/// Jobs in one write, and their bytes after which no more go into it: settlements wait for it.
const BATCH_MAX: usize = 64;
const BATCH_BYTES: usize = 4 << 20;

/// How a store is written. Writing again must be safe after any failure.
pub(crate) trait StoreWriter: Send + Sync {
    /// What arrives.
    type Job: Send;
    /// What one write takes.
    type Batch: Send + Sync;
    /// What comes of a write.
    type Written: Send;
    /// Why there was none.
    type Error: Error + Send;

    /// What the log says of a failure.
    const FAILURE: &'static str;

    /// A batch of this job, and of what else has arrived, if one write takes more.
    fn batch(first: Self::Job, arrived: &mut mpsc::Receiver<Self::Job>) -> Self::Batch;

    /// Writes a batch.
    fn write<'a>(&'a self, batch: &'a Self::Batch) -> BoxFuture<'a, Result<Self::Written, Self::Error>>;

    /// Tells who waits what came of it. Nobody may be waiting any more.
    fn reply(batch: Self::Batch, written: Result<Self::Written, Self::Error>);

    /// Deletes the oldest from before then, so many at most; returns how many.
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, Self::Error>>;
}

/// This job and what else has arrived, as much of it as one write takes.
pub(crate) fn gather<J>(first: J, arrived: &mut mpsc::Receiver<J>, size: impl Fn(&J) -> usize) -> Vec<J> {
    let (mut bytes, mut jobs) = (size(&first), vec![first]);
    while bytes < BATCH_BYTES && jobs.len() < BATCH_MAX {
        let Ok(next) = arrived.try_recv() else { break };
        bytes += size(&next);
        jobs.push(next);
    }
    jobs
}

/// How long records are kept, and how often it is looked for those that are too old.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    pub(crate) keep: Duration,
    pub(crate) sweep: Duration,
}

/// Runs until shutdown, and then until everything is written that arrived.
pub(crate) async fn run<W: StoreWriter>(
    writer: W,
    mut arrived: mpsc::Receiver<W::Job>,
    retention: Retention,
    tasks: Tasks,
) {
    let stopping = tasks.stopping();
    tokio::pin!(stopping);
    let mut next_purge = Instant::now() + retention.sweep;
    let mut is_closing = false;
    loop {
        tokio::select! {
            first = arrived.recv() => match first {
                None => return,
                Some(first) => {
                    let batch = W::batch(first, &mut arrived);
                    let written = write(&writer, &batch).await;
                    W::reply(batch, written);
                }
            },
            () = &mut stopping, if !is_closing => {
                is_closing = true;
                arrived.close();
            }
            () = sleep_until(next_purge) => next_purge = Instant::now() + purge(&writer, retention).await,
        }
    }
}

async fn write<W: StoreWriter>(writer: &W, batch: &W::Batch) -> Result<W::Written, W::Error> {
    let mut wait = RETRY_MIN;
    for _ in 1..TRIES_MAX {
        match writer.write(batch).await {
            Ok(written) => return Ok(written),
            Err(error) => report::<W>(&error),
        }
        sleep(wait).await;
        wait *= 2;
    }
    writer.write(batch).await.inspect_err(report::<W>)
}

/// Deletes some of what is too old; returns when to look again.
async fn purge<W: StoreWriter>(writer: &W, retention: Retention) -> Duration {
    let before = Timestamp::now().before(retention.keep);
    match writer.purge(before, PURGE_MAX).await {
        Ok(purged) if purged >= u64::from(PURGE_MAX) => return PURGE_PAUSE,
        Ok(_) => {}
        Err(error) => report::<W>(&error),
    }
    retention.sweep
}

fn report<W: StoreWriter>(error: &W::Error) {
    let source = error.source().map(ToString::to_string);
    tracing::error!(%error, source, "{}", W::FAILURE);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("it does not work")]
    struct WriteFailed;

    /// A store whose next so many writes fail, and that has so many old records.
    #[derive(Debug, Default)]
    struct FailingStore {
        failures: AtomicU32,
        writes: AtomicU32,
        old: AtomicU64,
        purges: AtomicU32,
    }

    struct FailingWriter(Arc<FailingStore>);

    impl StoreWriter for FailingWriter {
        type Job = oneshot::Sender<Result<(), WriteFailed>>;
        type Batch = oneshot::Sender<Result<(), WriteFailed>>;
        type Written = ();
        type Error = WriteFailed;

        const FAILURE: &'static str = "the store failed";

        fn batch(first: Self::Job, _: &mut mpsc::Receiver<Self::Job>) -> Self::Batch {
            first
        }

        fn write<'a>(&'a self, _: &'a Self::Batch) -> BoxFuture<'a, Result<(), WriteFailed>> {
            self.0.writes.fetch_add(1, Ordering::Relaxed);
            let left = self.0.failures.load(Ordering::Relaxed);
            self.0.failures.store(left.saturating_sub(1), Ordering::Relaxed);
            async move { if left > 0 { Err(WriteFailed) } else { Ok(()) } }.boxed()
        }

        fn reply(batch: Self::Batch, written: Result<(), WriteFailed>) {
            let _ = batch.send(written);
        }

        fn purge(&self, _: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, WriteFailed>> {
            self.0.purges.fetch_add(1, Ordering::Relaxed);
            let purged = self.0.old.load(Ordering::Relaxed).min(most.into());
            self.0.old.fetch_sub(purged, Ordering::Relaxed);
            async move { Ok(purged) }.boxed()
        }
    }

    fn start(
        store: &Arc<FailingStore>,
        tasks: &Tasks,
    ) -> mpsc::Sender<oneshot::Sender<Result<(), WriteFailed>>> {
        let (jobs, arrived) = mpsc::channel(8);
        let retention = Retention { keep: Duration::from_secs(60), sweep: Duration::from_secs(10) };
        tasks.spawn(run(FailingWriter(store.clone()), arrived, retention, tasks.clone()));
        jobs
    }

    #[tokio::test]
    async fn a_write_takes_what_has_arrived_up_to_its_bounds() {
        let (jobs, mut arrived) = mpsc::channel(128);
        let gathered = |arrived: &mut mpsc::Receiver<usize>, first| gather(first, arrived, |bytes| *bytes);
        assert_eq!(gathered(&mut arrived, 7), [7]);
        for bytes in [1, BATCH_BYTES, 2] {
            jobs.send(bytes).await.unwrap();
        }
        assert_eq!(gathered(&mut arrived, 7), [7, 1, BATCH_BYTES], "then it has enough");
        assert_eq!(gathered(&mut arrived, 7), [7, 2]);
        for _ in 0..BATCH_MAX {
            jobs.send(1).await.unwrap();
        }
        assert_eq!(gathered(&mut arrived, 7).len(), BATCH_MAX);
        assert_eq!(gathered(&mut arrived, 7), [7, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_fails_is_tried_six_times_in_a_second_and_a_half() {
        for (failures, expected, writes) in [(5, Ok(()), 6), (6, Err(WriteFailed), 6), (0, Ok(()), 1)] {
            let (store, tasks) = (Arc::<FailingStore>::default(), Tasks::default());
            store.failures.store(failures, Ordering::Relaxed);
            let (reply, answer) = oneshot::channel();
            let began = Instant::now();
            start(&store, &tasks).send(reply).await.unwrap();
            assert_eq!(answer.await.unwrap(), expected);
            assert_eq!(store.writes.load(Ordering::Relaxed), writes, "{failures}");
            assert!(began.elapsed() < Duration::from_millis(1_600), "{:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_much_is_too_old_it_goes_in_parts_with_short_pauses() {
        let (store, tasks) = (Arc::<FailingStore>::default(), Tasks::default());
        store.old.store(2 * u64::from(PURGE_MAX) + 1, Ordering::Relaxed);
        let _jobs = start(&store, &tasks);
        sleep(Duration::from_millis(10_200)).await;
        assert_eq!((store.old.load(Ordering::Relaxed), store.purges.load(Ordering::Relaxed)), (0, 3));
        sleep(Duration::from_secs(9)).await;
        assert_eq!(store.purges.load(Ordering::Relaxed), 3, "then at the usual time");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(store.purges.load(Ordering::Relaxed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_arrived_is_written_after_shutdown_began() {
        let (store, tasks) = (Arc::<FailingStore>::default(), Tasks::default());
        let jobs = start(&store, &tasks);
        let mut answers = Vec::new();
        for _ in 0..3 {
            let (reply, answer) = oneshot::channel();
            jobs.send(reply).await.unwrap();
            answers.push(answer);
        }
        tasks.stop();
        assert!(tasks.drain(Duration::from_secs(60)).await);
        for answer in answers {
            assert_eq!(answer.await.unwrap(), Ok(()));
        }
    }
}
