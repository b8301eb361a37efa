//! The one ticket for a key: held by the caller's side and by the flight, ended when the last of them lets go.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::units::{RequestId, Timestamp};

use super::idempotency::Inner;
use super::{Answer, AnswersError, Body, Change, End, Fingerprint, Record, Scope};

/// A key for which one request may run. Clones are the same ticket.
///
/// Dropped without an answer, the key is free again if nothing was sent, and remembered as interrupted otherwise.
#[derive(Clone)]
pub struct Ticket {
    stub: Arc<Stub>,
}

struct Stub {
    inner: Arc<Inner>,
    scope: Scope,
    fingerprint: Fingerprint,
    phase: Mutex<Phase>,
    _place: OwnedSemaphorePermit,
}

/// How far the request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
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
    Store(#[from] AnswersError),
}

impl Ticket {
    pub(super) fn new(
        inner: Arc<Inner>,
        scope: Scope,
        fingerprint: Fingerprint,
        place: OwnedSemaphorePermit,
    ) -> Ticket {
        let phase = Mutex::new(Phase::New);
        Ticket { stub: Arc::new(Stub { inner, scope, fingerprint, phase, _place: place }) }
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
        let stub = &self.stub;
        let record = Record { fingerprint: stub.fingerprint, request, begun: now, until, end: None };
        let dead_before = stub.inner.oldest(now);
        *stub.phase() = Phase::Begun(request);
        let begun = stub.inner.submit(Change::Begin { scope: stub.scope.clone(), record, dead_before });
        let slow = || AnswersError::new("the records of idempotency keys do not answer");
        match timeout(stub.inner.settings.begin_max, begun).await {
            Ok(Ok(Ok(true))) => Ok(()),
            Ok(Ok(Ok(false))) => {
                *stub.phase() = Phase::New;
                Err(BeginError::Taken)
            }
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Err(slow().into()),
        }
    }

    /// From here on the request may cost something.
    pub fn sent(&self) {
        let mut phase = self.stub.phase();
        if let Phase::Begun(request) = *phase {
            *phase = Phase::Sent(request);
        }
    }

    /// It cost nothing after all, and there is no answer worth keeping: the caller may try again.
    pub fn cost_nothing(&self) {
        let mut phase = self.stub.phase();
        if let Phase::Sent(request) = *phase {
            *phase = Phase::Begun(request);
        }
    }

    /// The largest streamed body that is kept; nothing, where streams are not.
    pub fn stream_max(&self) -> Option<usize> {
        let settings = &self.stub.inner.settings;
        settings.replay_streams.then_some(settings.answer_max)
    }

    /// Keeps the answer that is about to go out, and waits a bounded time until it is durable. Where nothing was charged,
    /// the key is free again instead.
    pub async fn answered(&self, mut answer: Answer) {
        let most = self.stub.inner.settings.answer_max;
        if matches!(&answer.body, Body::Whole(bytes) if bytes.len() > most) {
            answer.body = Body::TooLarge;
        }
        if let Some(change) = self.stub.end(End::Answered(answer)) {
            let written = self.stub.inner.submit(change);
            self.stub.release();
            if timeout(self.stub.inner.settings.patience, written).await.is_err() {
                tracing::warn!("an answer went out before it was kept for its idempotency key");
            }
        }
    }
}

impl Stub {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The change that ends it, once, where there is anything to change.
    fn end(&self, end: End) -> Option<Change> {
        let scope = self.scope.clone();
        let mut phase = self.phase();
        let change = match *phase {
            Phase::New | Phase::Ended => return None,
            Phase::Begun(request) => Change::Forget { scope, request },
            Phase::Sent(request) => Change::End { scope, request, end },
        };
        *phase = Phase::Ended;
        Some(change)
    }

    /// From here on the records alone say what there is under the key.
    fn release(&self) {
        self.inner.running.remove(&self.scope);
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        if *self.phase() == Phase::Ended {
            return;
        }
        if let Some(change) = self.end(End::Interrupted) {
            drop(self.inner.submit(change));
        }
        self.release();
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("scope", &self.stub.scope).finish_non_exhaustive()
    }
}
