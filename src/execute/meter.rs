//! `Meter`: what a running choice has taken so far, readable from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use stint_types::catalog::ChoiceUsage;

/// The shortest time between two readings. A short answer is read often, so that what was written since is a small part of it.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest. Drawing up the account costs time, and nobody needs a reading once the choice has ended.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// In between, a reading is due after one part in so many of the time that passed.
const PART: u32 = 10;

/// A reading that the choice renews while it runs. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<ChoiceUsage>>, Arc<AtomicBool>);

/// When the next reading is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeterSchedule {
    began: Instant,
    next: Instant,
}

impl Meter {
    /// The last reading.
    pub fn read(&self) -> ChoiceUsage {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once the backend has answered the first call, even with a failure.
    pub fn has_response(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    pub(super) fn mark_response(&self) {
        self.1.store(true, Ordering::Relaxed);
    }

    pub(super) fn update(&self, spent: ChoiceUsage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = spent;
    }
}

impl MeterSchedule {
    pub(super) fn first() -> MeterSchedule {
        let began = Instant::now();
        MeterSchedule { began, next: began + INTERVAL_MIN }
    }

    /// When it is.
    pub(super) fn next_at(&self) -> Instant {
        self.next
    }

    /// True once in every period.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + ((now - self.began) / PART).clamp(INTERVAL_MIN, INTERVAL_MAX);
        }
        due
    }
}
