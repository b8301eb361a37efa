//! The handle: who runs under which key now, and the way to the records.

use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::tasks::Tasks;
use crate::units::{RequestId, Timestamp};

use super::writer::{Job, Writer};
use super::{Answer, Answers, AnswersError, Change, End, Fingerprint, Record, Scope, Settings, Ticket};

/// Keys and what they stand for. Clones share them.
#[derive(Clone)]
pub struct Idempotency {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) settings: Settings,
    store: Arc<dyn Answers>,
    /// What runs in this process. Its entries are locked for moments and never across an await.
    pub(super) running: DashMap<Scope, Fingerprint>,
    places: Arc<Semaphore>,
    jobs: mpsc::Sender<Job>,
}

/// What there is under a key.
#[derive(Debug)]
pub enum Found {
    /// Nothing: the request is the first to use it.
    Free(Ticket),
    /// The same request, which still runs.
    Running,
    /// A request for something else.
    Other,
    /// The same request, with its id and its answer.
    Answered(RequestId, Answer),
    /// The same request, which nobody was told the end of.
    Interrupted(RequestId),
}

/// Why nobody knows what there is under a key.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookError {
    /// Too many requests with keys run.
    #[error("too many requests with an idempotency key are in flight; try again shortly")]
    Full,
    /// The records cannot be read.
    #[error("what is known of idempotency keys cannot be read right now; try again shortly")]
    Store(#[from] AnswersError),
}

impl Idempotency {
    /// Opens the records: what ran in a process that is gone was interrupted.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn open(
        tasks: &Tasks,
        store: Arc<dyn Answers>,
        settings: Settings,
        now: Timestamp,
    ) -> Result<Idempotency, AnswersError> {
        let interrupted = store.interrupt(now).await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "requests with an idempotency key were cut off by the last end");
        }
        // A beginning and an end for each place; more only while the store stands still.
        let (jobs, arrived) = mpsc::channel(settings.running_max.saturating_mul(2).max(1));
        let writer = Writer { store: store.clone(), keep: settings.keep, sweep: settings.sweep, arrived };
        tasks.spawn(writer.run(tasks.clone()));
        let places = Arc::new(Semaphore::new(settings.running_max));
        let inner = Inner { settings, store, running: DashMap::new(), places, jobs };
        Ok(Idempotency { inner: Arc::new(inner) })
    }

    /// What holds of keys.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// A ticket to run a request under its key, or what there is under it already.
    ///
    /// # Errors
    /// When nobody knows; the request must not run then.
    pub async fn look(
        &self,
        scope: Scope,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Found, LookError> {
        let ticket = match self.inner.running.entry(scope.clone()) {
            Entry::Occupied(running) if *running.get() == fingerprint => return Ok(Found::Running),
            Entry::Occupied(_) => return Ok(Found::Other),
            Entry::Vacant(free) => {
                let place = self.inner.places.clone().try_acquire_owned().map_err(|_| LookError::Full)?;
                free.insert(fingerprint);
                Ticket::new(self.inner.clone(), scope.clone(), fingerprint, place)
            }
        };
        Ok(match self.inner.store.find(&scope, self.inner.oldest(now)).await? {
            None => Found::Free(ticket),
            Some(record) => found(record, fingerprint, now),
        })
    }
}

fn found(record: Record, fingerprint: Fingerprint, now: Timestamp) -> Found {
    match record.end {
        _ if record.fingerprint != fingerprint => Found::Other,
        Some(End::Answered(answer)) => Found::Answered(record.request, answer),
        // It runs in another process, or its end is on the way to the records.
        None if now < record.until => Found::Running,
        None | Some(End::Interrupted) => Found::Interrupted(record.request),
    }
}

impl Inner {
    /// What was begun before counts no more.
    pub(super) fn oldest(&self, now: Timestamp) -> Timestamp {
        now.before(self.settings.keep)
    }

    /// Puts a change on its way. It gets there whether anybody waits or not.
    pub(super) fn submit(&self, change: Change) -> oneshot::Receiver<Result<bool, AnswersError>> {
        let (told, answer) = oneshot::channel();
        if self.jobs.try_send(Job { change, told }).is_err() {
            tracing::error!("an idempotency key's record is not written: too much waits for the store");
        }
        answer
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("running", &self.inner.running.len()).finish_non_exhaustive()
    }
}
