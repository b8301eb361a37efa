//! The task that writes request records and verdicts to the store. It may wait for the store; nothing waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use stint_sessions::history::{HistoryStoreError, WritableRecord};
use stint_types::catalog::Verdict;
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

use super::inner::LearningInner;

/// What may wait for the store.
const JOBS_MAX: usize = 4096;
/// Jobs in one commit, and the pause after it: settlements may wait for a commit, so there are not many.
const BATCH_MAX: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);
/// How long a commit may take, and how long it may take at the end.
const COMMIT_MAX: Duration = Duration::from_secs(10);
const LAST_COMMIT: Duration = Duration::from_secs(2);
/// How often one commit is tried, and how long the next try waits.
const TRIES_MAX: u32 = 3;
const RETRY_WAIT: Duration = Duration::from_millis(500);
/// Stories deleted at once: settlements may wait for it. Where there were so many, more are deleted soon. As many as a commit
/// brings, so that there are not more and more.
const PURGE_MAX: u32 = 256;
const PURGE_EVERY: Duration = Duration::from_secs(60);
const PURGE_PAUSE: Duration = Duration::from_millis(50);

/// A record or verdict to be stored.
pub(super) enum WriteJob {
    Record(Arc<WritableRecord>),
    Verdict(Verdict),
}

/// The sender to the writing task. The task ends when this is dropped, after it has stored all that it was given.
pub(super) struct StoryWriter {
    inner: Arc<LearningInner>,
    jobs: mpsc::Sender<WriteJob>,
}

impl StoryWriter {
    pub(super) fn start(tasks: &Tasks, inner: Arc<LearningInner>) -> StoryWriter {
        let (jobs, arrived) = mpsc::channel(JOBS_MAX);
        tasks.spawn(StoryWriterWorker { inner: inner.clone(), tasks: tasks.clone() }.run(arrived));
        StoryWriter { inner, jobs }
    }

    /// Queues a job. It is dropped if the queue is full.
    pub(super) fn keep(&self, job: WriteJob) {
        if self.jobs.try_send(job).is_err() {
            self.inner.lost(1);
        }
    }
}

struct StoryWriterWorker {
    inner: Arc<LearningInner>,
    tasks: Tasks,
}

impl StoryWriterWorker {
    async fn run(self, mut arrived: mpsc::Receiver<WriteJob>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let (mut purge, mut before) = (Instant::now() + PURGE_EVERY, None);
        loop {
            tokio::select! {
                count = arrived.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    let is_kept = self.commit(&batch).await;
                    batch.clear();
                    if !is_kept && self.tasks.is_stopping() {
                        return self.inner.lost(arrived.len());
                    }
                    self.pause().await;
                }
                () = sleep_until(purge) => purge = Instant::now() + self.purge(&mut before).await,
            }
        }
    }

    /// Lets more arrive; not at the end.
    async fn pause(&self) {
        tokio::select! {
            () = sleep(PAUSE) => {}
            () = self.tasks.stopping() => {}
        }
    }

    /// Tries a few times, then gives up; returns whether it is stored.
    async fn commit(&self, batch: &[WriteJob]) -> bool {
        for attempt in 1..=TRIES_MAX {
            let written = tokio::select! {
                biased;
                written = self.write(batch) => written,
                () = self.patience() => Err(HistoryStoreError::new("the store did not answer in time")),
            };
            let Err(error) = written else { return true };
            if attempt == TRIES_MAX || self.tasks.is_stopping() {
                let (lost, error) = (batch.len(), &error as &dyn std::error::Error);
                tracing::error!(lost, error, "request records cannot be stored");
                break;
            }
            sleep(RETRY_WAIT).await;
        }
        self.inner.lost(batch.len());
        false
    }

    /// Ends when a commit has taken too long; at the end of all, that is sooner.
    async fn patience(&self) {
        let last = async {
            self.tasks.stopping().await;
            sleep(LAST_COMMIT).await;
        };
        tokio::select! {
            () = sleep(COMMIT_MAX) => {}
            () = last => {}
        }
    }

    async fn write(&self, batch: &[WriteJob]) -> Result<(), HistoryStoreError> {
        let stories: Vec<Arc<WritableRecord>> = batch
            .iter()
            .filter_map(|job| match job {
                WriteJob::Record(story) => Some(story.clone()),
                WriteJob::Verdict(_) => None,
            })
            .collect();
        if !stories.is_empty() {
            self.inner.records.insert(&stories).await?;
        }
        for job in batch {
            if let WriteJob::Verdict(verdict) = job {
                self.inner.records.set_verdict(verdict).await?;
            }
        }
        Ok(())
    }

    /// Deletes some of what is too old or too much, up to a moment that is found out when all up to the last one is gone;
    /// says when to look again.
    async fn purge(&self, up_to: &mut Option<Timestamp>) -> Duration {
        let purged = timeout(COMMIT_MAX, async {
            let before = match *up_to {
                Some(before) => before,
                None => *up_to.insert(self.purge_bound().await?),
            };
            self.inner.records.purge(before, PURGE_MAX).await
        });
        let late = |_| HistoryStoreError::new("the store did not answer in time");
        match purged.await.map_err(late).flatten() {
            Ok(purged) if purged >= u64::from(PURGE_MAX) => return PURGE_PAUSE,
            Ok(_) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "old stories cannot be deleted");
            }
        }
        *up_to = None;
        PURGE_EVERY
    }

    /// What was decided before is too old, or there is too much of it.
    async fn purge_bound(&self) -> Result<Timestamp, HistoryStoreError> {
        let settings = &self.inner.settings;
        let too_old = Timestamp::now().before(settings.keep);
        let beyond = self.inner.records.retention_cutoff(settings.stories_max).await?;
        Ok(beyond.map_or(too_old, |at| too_old.max(Timestamp(at.0.saturating_add(1)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::LearnSettings;
    use crate::gateway::Learning;
    use stint_sessions::history::conformance::story;
    use stint_sessions::history::{HistoryStore, MemoryHistoryStore};
    use stint_types::metrics::Metrics;

    /// What is there of so many stories a millisecond apart, the latest of now, after two minutes.
    async fn check(stories: i64, settings: LearnSettings, left: u32) {
        let (tasks, store) = (Tasks::default(), Arc::new(MemoryHistoryStore::default()));
        let metrics = Arc::new(Metrics::new().unwrap());
        let now = Timestamp::now().0;
        let written = |ago| WritableRecord::new(Arc::new(story(now - ago)));
        let stories: Vec<_> = (0..stories).map(written).collect();
        store.insert(&stories).await.unwrap();
        let learning = Learning::open(&tasks, store.clone(), metrics, settings).await;
        sleep(PURGE_EVERY * 2).await;
        assert_eq!(store.retention_cutoff(left).await.unwrap(), None);
        let latest = store.retention_cutoff(left - 1).await.unwrap();
        assert_eq!(latest, Some(Timestamp(now + 1 - i64::from(left))), "the oldest that is left");
        drop(learning);
        tasks.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_stories_the_latest_are_kept() {
        let settings = LearnSettings { stories_max: 1000, ..LearnSettings::default() };
        check(3000, settings.clone(), 1000).await;
        check(900, settings, 900).await;
    }
}
