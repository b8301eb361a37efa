//! `Observer`: receives commits, failures, warnings and resolutions of the ledger, for metrics and alerts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::accounts::{ClosedReservation, LimitWarning};
use crate::journal::JournalError;

/// Watches the ledger, for metrics and alerts. Calls must return at once.
pub trait Observer: Send + Sync {
    /// So many entries became durable in one commit.
    fn committed(&self, entries: usize, took: Duration) {
        let _ = (entries, took);
    }

    /// A commit failed.
    fn failed(&self, error: &JournalError) {
        let _ = error;
    }

    /// A limit is nearly used up.
    fn warned(&self, warning: &LimitWarning) {
        let _ = warning;
    }

    /// A reservation was resolved.
    fn resolved(&self, closed: &ClosedReservation) {
        let _ = closed;
    }
}

/// Nobody watches.
impl Observer for () {}

/// An observer whose panics do no harm: requests are settled and the writer continues.
pub(crate) struct GuardedObserver(pub(crate) Arc<dyn Observer>);

impl GuardedObserver {
    fn notify(&self, what: impl FnOnce(&dyn Observer)) {
        if catch_unwind(AssertUnwindSafe(|| what(&*self.0))).is_err() {
            tracing::error!("an observer of the ledger panicked; metrics or alerts may be incomplete");
        }
    }
}

impl Observer for GuardedObserver {
    fn committed(&self, entries: usize, took: Duration) {
        self.notify(|observer| observer.committed(entries, took));
    }

    fn failed(&self, error: &JournalError) {
        self.notify(|observer| observer.failed(error));
    }

    fn warned(&self, warning: &LimitWarning) {
        self.notify(|observer| observer.warned(warning));
    }

    fn resolved(&self, closed: &ClosedReservation) {
        self.notify(|observer| observer.resolved(closed));
    }
}
