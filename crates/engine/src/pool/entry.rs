//! One model of a pool: how it stands, who uses it, and what it did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::EngineError;
use crate::failure_cause::{EngineEvent, FailureCause, UnloadReason};
use crate::handle::EngineLoad;
use crate::messages::EngineCounts;
use crate::restart_policy::RestartPolicy;
use crate::supervised::SupervisedEngine;

use super::engine_spec::{EngineSpec, Residency};
use super::load_time::LoadTime;

/// A thought that was cut is gone on with so soon after its first half, or not at all. Meanwhile its model is in use.
pub(super) const RESUMED_WITHIN: Duration = Duration::from_secs(2);

/// A request's place among those that wait for a model: later ones are greater.
pub(super) type Ticket = u64;

/// What a model's engines did, all of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineTotals {
    /// How often it was loaded.
    pub loads: u64,
    /// How often it could not be.
    pub failed_loads: u64,
    /// How long loading took, in sum.
    pub load_time: Duration,
    /// How often it was let go, in the order of [`UnloadReason::ALL`].
    pub unloads: [u64; UnloadReason::ALL.len()],
    /// How often an engine was to be started again after a failure, in the order of [`FailureCause::ALL`].
    pub restarts: [u64; FailureCause::ALL.len()],
}

/// How a model stands.
#[derive(Debug)]
pub(super) enum LoadStage {
    Unloaded,
    Loading {
        since: Instant,
    },
    Loaded(SupervisedEngine),
    /// It is being let go, and has its memory still.
    Leaving,
    /// It could not be loaded. Nobody tries before then.
    Failed {
        error: EngineError,
        until: Instant,
    },
}

pub(super) struct Entry {
    pub(super) spec: Arc<EngineSpec>,
    pub(super) residency: Residency,
    pub(super) stage: LoadStage,
    /// Requests that use it.
    pub(super) leases: usize,
    /// Until then a request that used it may come back for the rest of its answer.
    resumed_until: Option<Instant>,
    /// Requests that wait for it, and since when.
    pub(super) waiters: BTreeMap<Ticket, Instant>,
    /// Since when they wait for others to leave it room.
    pub(super) no_room_since: Option<Instant>,
    /// It takes no more requests until it was let go: another has waited for its room.
    pub(super) is_yielding: bool,
    pub(super) last_used: Instant,
    pub(super) load_time: LoadTime,
    pub(super) totals: EngineTotals,
    policy: RestartPolicy,
    /// What engines did that are gone.
    before: EngineCounts,
    /// How long the first step of one sequence took at the last load.
    pub(super) single_step: Option<Duration>,
}

impl Entry {
    pub(super) fn new(spec: Arc<EngineSpec>, residency: Residency, now: Instant) -> Self {
        Entry {
            residency,
            stage: LoadStage::Unloaded,
            leases: 0,
            resumed_until: None,
            waiters: BTreeMap::new(),
            no_room_since: None,
            is_yielding: false,
            last_used: now,
            load_time: LoadTime::guess(spec.size.weights),
            totals: EngineTotals::default(),
            policy: RestartPolicy::default(),
            before: EngineCounts::default(),
            single_step: None,
            spec,
        }
    }

    /// Whether it has memory.
    pub(super) fn has_memory(&self) -> bool {
        matches!(self.stage, LoadStage::Loading { .. } | LoadStage::Loaded(_) | LoadStage::Leaving)
    }

    /// The engine that takes requests.
    pub(super) fn open_engine(&self) -> Option<&SupervisedEngine> {
        match &self.stage {
            LoadStage::Loaded(engine) if !self.is_yielding => Some(engine),
            _ => None,
        }
    }

    pub(super) fn engine(&self) -> Option<&SupervisedEngine> {
        if let LoadStage::Loaded(engine) = &self.stage { Some(engine) } else { None }
    }

    /// Whether it may not be let go: a request uses it, may come back for the rest of its answer, or is about to use it. Those
    /// that wait for one which yields wait until it was loaded again.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        let may_be_resumed = self.resumed_until.is_some_and(|until| now < until);
        self.leases > 0 || may_be_resumed || (!self.waiters.is_empty() && !self.is_yielding)
    }

    /// When it is to be let go, where nobody uses it.
    pub(super) fn expires(&self) -> Option<Instant> {
        let is_idle = self.leases == 0 && self.waiters.is_empty() && self.engine().is_some();
        let at = self.residency.keep_alive.filter(|_| is_idle).map(|time| self.last_used + time)?;
        Some(self.resumed_until.map_or(at, |until| at.max(until)))
    }

    /// A request uses it no more. It may come back for the rest of its answer.
    pub(super) fn release(&mut self, may_resume: bool, now: Instant) {
        self.leases = self.leases.saturating_sub(1);
        self.last_used = now;
        if may_resume {
            self.resumed_until = Some(now + RESUMED_WITHIN);
        }
    }

    /// Since when a request waits for it.
    pub(super) fn wanted_since(&self) -> Option<Instant> {
        self.waiters.values().next().copied()
    }

    /// How busy it is now. What engines before this one did is counted in.
    pub(super) fn load(&self) -> EngineLoad {
        let mut load = self.engine().map_or_else(|| self.spec.idle_load(), SupervisedEngine::load);
        load.counts += self.before;
        load.waiting += self.waiters.len();
        load
    }

    /// All that its engines did.
    pub(super) fn totals(&self) -> EngineTotals {
        let mut totals = self.totals;
        if let Some(engine) = self.engine() {
            add_restarts(&mut totals, engine);
        }
        totals
    }

    /// It was loaded, or not. Returns what is to be told of it.
    pub(super) fn finish_load(
        &mut self,
        loaded: Result<SupervisedEngine, EngineError>,
        now: Instant,
    ) -> EngineEvent {
        let took = match self.stage {
            LoadStage::Loading { since } => now.saturating_duration_since(since),
            _ => Duration::ZERO,
        };
        self.last_used = now;
        match loaded {
            Ok(engine) => {
                self.load_time.record(took);
                self.totals.loads += 1;
                self.totals.load_time += took;
                self.policy = RestartPolicy::default();
                self.single_step = Some(engine.single_step());
                let event = EngineEvent::Loaded {
                    took,
                    device: engine.device().clone(),
                    memory: engine.memory_bytes(),
                };
                self.stage = LoadStage::Loaded(engine);
                event
            }
            Err(error) => {
                self.totals.failed_loads += 1;
                let wait = self.policy.next_wait(Duration::ZERO);
                self.stage = LoadStage::Failed { error: error.clone(), until: now + wait };
                EngineEvent::LoadFailed { error, wait }
            }
        }
    }

    /// Takes its engine out, to be stopped.
    pub(super) fn take_engine(&mut self, next: LoadStage) -> Option<SupervisedEngine> {
        match std::mem::replace(&mut self.stage, next) {
            LoadStage::Loaded(engine) => {
                self.before += engine.load().counts;
                add_restarts(&mut self.totals, &engine);
                Some(engine)
            }
            other => {
                self.stage = other;
                None
            }
        }
    }
}

fn add_restarts(totals: &mut EngineTotals, engine: &SupervisedEngine) {
    let of_engine = engine.restarts();
    totals.restarts.iter_mut().zip(of_engine).for_each(|(sum, (_, more))| *sum += more);
}
