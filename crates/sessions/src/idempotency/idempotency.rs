//! The handle to idempotency keys: which requests run under which key now, and what the records have. `http` looks keys up
//! with it.

use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Semaphore, mpsc};

use stint_types::tasks::Tasks;
use stint_types::units::{RequestId, Timestamp};

use super::inner::IdempotencyInner;
use super::writer::IdempotencyWriter;
use super::{
    Fingerprint, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, IdempotencyStore,
    IdempotencyStoreError, IdempotencyTicket, Settings, StoredAnswer,
};

/// Keys and what they stand for. Clones share them.
#[derive(Clone)]
pub struct Idempotency {
    inner: Arc<IdempotencyInner>,
}

/// What there is under a key.
#[derive(Debug)]
pub enum IdempotencyLookup {
    /// Nothing: the request is the first to use it.
    Free(IdempotencyTicket),
    /// The same request, which still runs.
    Running,
    /// A request for something else.
    Mismatch,
    /// The same request, with its id and its answer.
    Answered(RequestId, StoredAnswer),
    /// The same request, whose end no caller saw.
    Interrupted(RequestId),
}

/// Why a key could not be looked up.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// Too many requests with keys run.
    #[error("too many requests with an idempotency key are in flight; try again shortly")]
    Full,
    /// The records cannot be read.
    #[error("what is known of idempotency keys cannot be read right now; try again shortly")]
    Store(#[from] IdempotencyStoreError),
}

impl Idempotency {
    /// Opens the records: what ran in a process that is gone was interrupted.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn open(
        tasks: &Tasks,
        store: Arc<dyn IdempotencyStore>,
        settings: Settings,
        now: Timestamp,
    ) -> Result<Idempotency, IdempotencyStoreError> {
        let interrupted = store.interrupt(now).await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "requests with an idempotency key were cut off by the last end");
        }
        // A beginning and an end for each running request; more only while the store stands still.
        let (jobs, arrived) = mpsc::channel(settings.running_max.saturating_mul(2).max(1));
        let writer = IdempotencyWriter {
            store: store.clone(),
            keep: settings.keep,
            sweep: settings.sweep,
            receiver: arrived,
        };
        tasks.spawn(writer.run(tasks.clone()));
        let places = Arc::new(Semaphore::new(settings.running_max));
        let inner = IdempotencyInner { settings, store, running: DashMap::new(), permits: places, jobs };
        Ok(Idempotency { inner: Arc::new(inner) })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// A ticket to run a request under its key, or what there is under it already.
    ///
    /// # Errors
    /// When nobody knows; the request must not run then.
    pub async fn lookup(
        &self,
        scope: IdempotencyKey,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<IdempotencyLookup, LookupError> {
        let ticket = match self.inner.running.entry(scope.clone()) {
            Entry::Occupied(running) if *running.get() == fingerprint => {
                return Ok(IdempotencyLookup::Running);
            }
            Entry::Occupied(_) => return Ok(IdempotencyLookup::Mismatch),
            Entry::Vacant(free) => {
                let place = self.inner.permits.clone().try_acquire_owned().map_err(|_| LookupError::Full)?;
                free.insert(fingerprint);
                IdempotencyTicket::new(self.inner.clone(), scope.clone(), fingerprint, place)
            }
        };
        Ok(match self.inner.store.find(&scope, self.inner.retention_cutoff(now)).await? {
            None => IdempotencyLookup::Free(ticket),
            Some(record) => classify(record, fingerprint, now),
        })
    }
}

fn classify(record: IdempotencyRecord, fingerprint: Fingerprint, now: Timestamp) -> IdempotencyLookup {
    match record.end {
        _ if record.fingerprint != fingerprint => IdempotencyLookup::Mismatch,
        Some(IdempotencyOutcome::Answered(answer)) => IdempotencyLookup::Answered(record.request, answer),
        // It runs in another process, or its end is on the way to the records.
        None if now < record.deadline => IdempotencyLookup::Running,
        None | Some(IdempotencyOutcome::Interrupted) => IdempotencyLookup::Interrupted(record.request),
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("running", &self.inner.running.len()).finish_non_exhaustive()
    }
}
