//! The handle to idempotency keys: which requests run under which key now, and what the records have. `http` looks keys up
//! with it.

use std::fmt;
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::{Semaphore, mpsc};

use crate::store_writer::{self, Retention};
use stint_types::tasks::Tasks;
use stint_types::units::{RequestId, Timestamp};

use super::inner::{IdempotencyInner, RunningKey};
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
        let writer = IdempotencyWriter { store: store.clone() };
        let retention = Retention { keep: settings.keep, sweep: settings.sweep };
        tasks.spawn(store_writer::run(writer, arrived, retention, tasks.clone()));
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
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<IdempotencyLookup, LookupError> {
        let taken = self.take(&key, fingerprint)?;
        if let Err(running @ RunningKey { is_first: true, .. }) = taken {
            return Ok(beside(running, fingerprint));
        }
        let found = self.inner.store.find(&key, self.inner.retention_cutoff(now)).await?;
        Ok(match (found, taken) {
            (Some(record), _) => classify(record, fingerprint, now),
            (None, Err(running)) => beside(running, fingerprint),
            (None, Ok(ticket)) => {
                if let Some(mut own) = self.inner.running.get_mut(&key) {
                    own.is_first = true;
                }
                IdempotencyLookup::Free(ticket)
            }
        })
    }

    /// A ticket for a key that no other request in this process uses now; else that request.
    fn take(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
    ) -> Result<Result<IdempotencyTicket, RunningKey>, LookupError> {
        Ok(match self.inner.running.entry(key.clone()) {
            Entry::Occupied(running) => Err(*running.get()),
            Entry::Vacant(free) => {
                let place = self.inner.permits.clone().try_acquire_owned().map_err(|_| LookupError::Full)?;
                free.insert(RunningKey { fingerprint, is_first: false });
                Ok(IdempotencyTicket::new(self.inner.clone(), key.clone(), fingerprint, place))
            }
        })
    }
}

/// What a request gets that has nothing in the records and comes while another uses its key.
fn beside(running: RunningKey, fingerprint: Fingerprint) -> IdempotencyLookup {
    if running.fingerprint == fingerprint { IdempotencyLookup::Running } else { IdempotencyLookup::Mismatch }
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
