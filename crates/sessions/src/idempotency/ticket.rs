//! The one ticket for a key. `http` and the request's task hold clones of it; it ends when the last clone is dropped.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use stint_types::units::{RequestId, Timestamp};

use super::inner::IdempotencyInner;
use super::{
    Fingerprint, IdempotencyChange, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord,
    IdempotencyStoreError, StoredAnswer, StoredBody,
};

/// A key for which one request may run. Clones are the same ticket.
///
/// Dropped without an answer, the key is free again if nothing was sent, and remembered as interrupted otherwise.
#[derive(Clone)]
pub struct IdempotencyTicket {
    inner: Arc<TicketInner>,
}

struct TicketInner {
    inner: Arc<IdempotencyInner>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
    phase: Mutex<TicketPhase>,
    _permit: OwnedSemaphorePermit,
}

/// How far the request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TicketPhase {
    /// Only in memory.
    New,
    /// Its record is written, or on its way. Nothing was charged.
    Begun(RequestId),
    /// The request was sent, and may cost something.
    Sent(RequestId),
    /// How it ended is on its way to the records.
    Ended,
}

/// Why a request may not be sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BeginError {
    /// Another replica was quicker.
    #[error("another request with this idempotency key is in flight; ask again in a moment")]
    Taken,
    /// The beginning could not be made durable.
    #[error("the idempotency key cannot be recorded right now; try again shortly")]
    Store(#[from] IdempotencyStoreError),
}

impl IdempotencyTicket {
    pub(super) fn new(
        inner: Arc<IdempotencyInner>,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        place: OwnedSemaphorePermit,
    ) -> IdempotencyTicket {
        let phase = Mutex::new(TicketPhase::New);
        IdempotencyTicket { inner: Arc::new(TicketInner { inner, key, fingerprint, phase, _permit: place }) }
    }

    /// Makes the beginning durable, before anything is sent or set aside for good. Nothing may be sent unless this succeeds.
    ///
    /// # Errors
    /// When another replica has begun, or nobody can know.
    pub async fn begin(
        &self,
        request: RequestId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), BeginError> {
        let ticket = &self.inner;
        let record = IdempotencyRecord {
            fingerprint: ticket.fingerprint,
            request,
            begun: now,
            deadline: until,
            end: None,
        };
        let expired_before = ticket.inner.retention_cutoff(now);
        *ticket.phase() = TicketPhase::Begun(request);
        let begun =
            ticket.inner.submit(IdempotencyChange::Begin { key: ticket.key.clone(), record, expired_before });
        let slow = || IdempotencyStoreError::new("the records of idempotency keys do not answer");
        match timeout(ticket.inner.settings.begin_max, begun).await {
            Ok(Ok(Ok(true))) => Ok(()),
            Ok(Ok(Ok(false))) => {
                *ticket.phase() = TicketPhase::New;
                Err(BeginError::Taken)
            }
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Err(slow().into()),
        }
    }

    /// From here on the request may cost something.
    pub fn mark_sent(&self) {
        let mut phase = self.inner.phase();
        if let TicketPhase::Begun(request) = *phase {
            *phase = TicketPhase::Sent(request);
        }
    }

    /// It cost nothing after all, and there is no answer worth keeping: the caller may try again.
    pub fn mark_uncharged(&self) {
        let mut phase = self.inner.phase();
        if let TicketPhase::Sent(request) = *phase {
            *phase = TicketPhase::Begun(request);
        }
    }

    /// The largest streamed body that is kept; nothing, where streams are not.
    pub fn stream_max(&self) -> Option<usize> {
        let settings = &self.inner.inner.settings;
        settings.replay_streams.then_some(settings.answer_max)
    }

    /// Keeps the answer that is about to go out, and waits a bounded time until it is durable. Where nothing was charged,
    /// the key is free again instead.
    pub async fn store_answer(&self, mut answer: StoredAnswer) {
        let most = self.inner.inner.settings.answer_max;
        if matches!(&answer.body, StoredBody::Whole(bytes) if bytes.len() > most) {
            answer.body = StoredBody::TooLarge;
        }
        if let Some(change) = self.inner.end(IdempotencyOutcome::Answered(answer)) {
            let written = self.inner.inner.submit(change);
            self.inner.release();
            if timeout(self.inner.inner.settings.patience, written).await.is_err() {
                tracing::warn!("an answer was sent before it was stored for its idempotency key");
            }
        }
    }
}

impl TicketInner {
    fn phase(&self) -> MutexGuard<'_, TicketPhase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The change that ends it, once, where there is anything to change.
    fn end(&self, end: IdempotencyOutcome) -> Option<IdempotencyChange> {
        let key = self.key.clone();
        let mut phase = self.phase();
        let change = match *phase {
            TicketPhase::New | TicketPhase::Ended => return None,
            TicketPhase::Begun(request) => IdempotencyChange::Forget { key, request },
            TicketPhase::Sent(request) => IdempotencyChange::End { key, request, end },
        };
        *phase = TicketPhase::Ended;
        Some(change)
    }

    /// From here on the records alone say what there is under the key.
    fn release(&self) {
        self.inner.running.remove(&self.key);
    }
}

impl Drop for TicketInner {
    fn drop(&mut self) {
        if *self.phase() == TicketPhase::Ended {
            return;
        }
        if let Some(change) = self.end(IdempotencyOutcome::Interrupted) {
            drop(self.inner.submit(change));
        }
        self.release();
    }
}

impl fmt::Debug for IdempotencyTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyTicket").field("key", &self.inner.key).finish_non_exhaustive()
    }
}
