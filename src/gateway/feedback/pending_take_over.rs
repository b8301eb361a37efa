//! What others left while it is being taken over. If nobody waited for the store's answer, the store may have it as ours, and
//! the next to save would write over it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stint_decide::learn::LearnedState;
use stint_sessions::history::{ReplicaId, ReplicaState};
use stint_types::units::Timestamp;

/// What is not in what was learned here, but may be in what the store has of us: when that was saved, and the states.
#[derive(Default)]
pub(super) struct PendingTakeOver(Mutex<Option<(Timestamp, Vec<LearnedState>)>>);

impl PendingTakeOver {
    /// `own` is about to be saved, with these states in it.
    pub(super) fn begin(&self, own: &ReplicaState, states: Vec<LearnedState>) {
        *self.lock() = (!states.is_empty()).then_some((own.at, states));
    }

    /// They are in what was learned here, or nobody's.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// True if the store should be asked what it has of us before anything is saved.
    pub(super) fn is_pending(&self) -> bool {
        self.lock().is_some()
    }

    /// The states that were taken over, by what the store has; they stay pending until they are learned.
    pub(super) fn committed(&self, all: &[ReplicaState], own: &ReplicaId) -> Option<Vec<LearnedState>> {
        let pending = self.lock();
        let (at, states) = pending.as_ref()?;
        all.iter().any(|state| state.replica == *own && state.at == *at).then(|| states.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Timestamp, Vec<LearnedState>)>> {
        // It is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
