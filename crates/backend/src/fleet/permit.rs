//! `Permit`: the right to call one target, given back when dropped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::Backend;

use super::monitor::MonitoredBackend;
use super::{Fleet, FlowId, PermitRequest};

/// Places on one target for all calls of a request. Dropping it gives them back.
#[must_use = "a permit that is not used is given back where it is dropped"]
pub struct Permit {
    fleet: Arc<Fleet>,
    target_index: usize,
    calls: u32,
    conversation: u64,
    probe: Arc<ProbeToken>,
    acquired_at: Instant,
}

/// Whose calls a permit's are, and true while they must find out whether the target works again. The first call that shows it
/// takes this, once.
#[derive(Debug)]
pub(super) struct ProbeToken {
    is_probing: AtomicBool,
    flow: FlowId,
}

impl ProbeToken {
    /// True the first time, if there was something to find out.
    pub(super) fn take(&self) -> bool {
        self.is_probing.swap(false, Ordering::Relaxed)
    }

    /// The account that calls.
    pub(super) fn flow(&self) -> FlowId {
        self.flow
    }
}

impl Permit {
    pub(super) fn new(fleet: Arc<Fleet>, place: usize, want: &PermitRequest, probe: bool) -> Permit {
        let probe = Arc::new(ProbeToken { is_probing: AtomicBool::new(probe), flow: want.flow });
        let (calls, conversation) = (want.calls, want.affinity.hash());
        Permit { fleet, target_index: place, calls, conversation, probe, acquired_at: Instant::now() }
    }

    /// What to call, for every part of every choice: the target, monitored by the fleet.
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(MonitoredBackend::new(
            self.fleet.clone(),
            self.target_index,
            self.conversation,
            self.probe.clone(),
        ))
    }

    /// Which target of the fleet it is.
    pub fn target_index(&self) -> usize {
        self.target_index
    }

    /// The target's name, for logs and metrics.
    pub fn target(&self) -> &Arc<str> {
        self.fleet.name(self.target_index)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.fleet.release(self.target_index, self.calls, self.acquired_at.elapsed(), &self.probe);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.target())
    }
}
