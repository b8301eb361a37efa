//! A place on a target, for as long as a request needs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::backend::Backend;

use super::watch::Watched;
use super::{Fleet, Want};

/// Places on one target for all calls of a request. Dropping it gives them back.
#[must_use = "a place that is not used is given back where it is dropped"]
pub struct Seat {
    fleet: Arc<Fleet>,
    place: usize,
    calls: u32,
    conversation: u64,
    probe: Arc<Probe>,
    taken: Instant,
}

/// Whether a seat's calls are to find out if the target works again: the first end that says so counts, once.
#[derive(Debug)]
pub(super) struct Probe(AtomicBool);

impl Probe {
    /// True once, where there is something to find out.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Seat {
    pub(super) fn new(fleet: Arc<Fleet>, place: usize, want: &Want, probe: bool) -> Seat {
        let probe = Arc::new(Probe(AtomicBool::new(probe)));
        let (calls, conversation) = (want.calls, want.beginning.number());
        Seat { fleet, place, calls, conversation, probe, taken: Instant::now() }
    }

    /// What to ask, for every part of every choice: the target, under the fleet's eyes.
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(Watched::new(self.fleet.clone(), self.place, self.conversation, self.probe.clone()))
    }

    /// Which target of the fleet it is.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The target's name, for logs and metrics.
    pub fn target(&self) -> &Arc<str> {
        self.fleet.name(self.place)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.fleet.left(self.place, self.calls, self.taken.elapsed(), self.probe.take());
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seat({})", self.target())
    }
}
