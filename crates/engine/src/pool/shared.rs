//! A pool's state and the signals around it: the keeper is woken by one, requests that wait by the other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::state::PoolState;

/// What all handles to a pool share.
pub(super) struct PoolShared {
    state: Mutex<PoolState>,
    keeper: Condvar,
    /// Rises with every change that a request may wait for.
    changes: watch::Sender<u64>,
}

impl PoolShared {
    pub(super) fn new(state: PoolState) -> Self {
        Self { state: Mutex::new(state), keeper: Condvar::new(), changes: watch::Sender::new(0) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Every change is made whole between taking and letting go of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keeper looks what is to be done.
    pub(super) fn wake(&self) {
        self.keeper.notify_all();
    }

    /// Requests that wait look again, and so does the keeper.
    pub(super) fn announce(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
        self.wake();
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until the keeper is woken, so long at most.
    pub(super) fn wait(&self, state: MutexGuard<'_, PoolState>, most: Duration) {
        drop(self.keeper.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner));
    }
}
