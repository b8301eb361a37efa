//! The watch over an engine: sees that it failed, waits, and starts the next one.

use std::sync::Weak;
use std::time::{Duration, Instant};

use super::error::EngineError;
use super::failure_cause::{EngineEvent, EngineOutage, FailureCause};
use super::handle::{Engine, EngineLoad};
use super::messages::EngineCounts;
use super::restart::{EngineStart, Restarter};
use super::step_limit::StallDetector;
use super::supervised::SupervisedInner;

/// How often the watch looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// An engine, or what is done to have one again.
pub(crate) struct SupervisedState {
    stage: Stage,
    restarter: Restarter,
    /// How often one was to be started again, by the causes in their order.
    restarts: [u64; FailureCause::ALL.len()],
    /// What the engines before this one did, and how large they were.
    before: EngineLoad,
    /// When the watch looked last.
    looked: Instant,
}

enum Stage {
    Running { engine: Engine, stall: StallDetector, since: Instant },
    Waiting { outage: OngoingOutage, until: Instant },
    Starting { outage: OngoingOutage, start: EngineStart },
    Stopped,
}

/// Why there is no engine, and since when.
#[derive(Debug, Clone, Copy)]
struct OngoingOutage {
    cause: FailureCause,
    since: Instant,
}

/// What has to be waited for once all is stopped.
pub(crate) struct StoppedParts {
    pub(crate) engine: Option<Engine>,
    pub(crate) start: Option<EngineStart>,
}

/// Looks after an engine until nobody holds it any more, or it is stopped.
pub(crate) fn supervise(watched: &Weak<SupervisedInner>) {
    loop {
        std::thread::sleep(LOOK_EVERY);
        let Some(inner) = watched.upgrade() else { return };
        let mut state = inner.lock();
        let event = state.look(Instant::now());
        let is_stopped = state.is_stopped();
        drop(state);
        if let Some(event) = event {
            (inner.listener)(&event);
        }
        if is_stopped {
            return;
        }
    }
}

impl SupervisedState {
    pub(crate) fn new(engine: Engine, restarter: Restarter) -> Self {
        let (now, load) = (Instant::now(), engine.load());
        let counts = EngineCounts::default();
        let before = EngineLoad { running: 0, waiting: 0, blocks_free: 0, counts, ..load };
        let restarts = [0; FailureCause::ALL.len()];
        Self { stage: Stage::running(engine, now), restarter, restarts, before, looked: now }
    }

    /// Looks how it stands now, and does what is due.
    fn look(&mut self, now: Instant) -> Option<EngineEvent> {
        let since_last = now.saturating_duration_since(self.looked);
        self.looked = now;
        match &mut self.stage {
            Stage::Running { engine, stall, since } => {
                let hangs = stall.look(engine.turns(), since_last);
                let stalled = hangs.then(|| EngineError::Stalled(engine.step_max()));
                let error = engine.failure().or(stalled)?;
                let ran = now.saturating_duration_since(*since);
                Some(self.fail(&error, ran, now))
            }
            Stage::Waiting { outage, until } if now >= *until => {
                let outage = *outage;
                self.start(outage, now)
            }
            Stage::Waiting { .. } | Stage::Stopped => None,
            Stage::Starting { outage, start } => {
                let (outage, started) = (*outage, start.poll()?);
                Some(self.finish_start(outage, started, now))
            }
        }
    }

    /// The engine is given up. All that ran on it hears why.
    fn fail(&mut self, error: &EngineError, ran: Duration, now: Instant) -> EngineEvent {
        let cause = FailureCause::of(error);
        let wait = self.restarter.policy.next_wait(ran);
        let outage = OngoingOutage { cause, since: now };
        let failed = std::mem::replace(&mut self.stage, Stage::Waiting { outage, until: now + wait });
        if let Stage::Running { engine, .. } = failed {
            self.restarter.give_up(engine.give_up(error));
            self.before.counts += engine.load().counts;
        }
        EngineEvent::Failed { cause, error: error.clone(), wait }
    }

    fn start(&mut self, outage: OngoingOutage, now: Instant) -> Option<EngineEvent> {
        for (cause, restarts) in FailureCause::ALL.iter().zip(&mut self.restarts) {
            *restarts += u64::from(*cause == outage.cause);
        }
        match self.restarter.begin() {
            Ok(start) => {
                self.stage = Stage::Starting { outage, start };
                None
            }
            Err(error) => Some(self.wait_again(outage, error, now)),
        }
    }

    fn finish_start(
        &mut self,
        outage: OngoingOutage,
        started: Result<Engine, EngineError>,
        now: Instant,
    ) -> EngineEvent {
        match started {
            Ok(engine) => {
                self.stage = Stage::running(engine, now);
                EngineEvent::Restarted { outage: now.saturating_duration_since(outage.since) }
            }
            Err(error) => self.wait_again(outage, error, now),
        }
    }

    fn wait_again(&mut self, outage: OngoingOutage, error: EngineError, now: Instant) -> EngineEvent {
        let wait = self.restarter.policy.next_wait(Duration::ZERO);
        let stage = std::mem::replace(&mut self.stage, Stage::Waiting { outage, until: now + wait });
        if let Stage::Starting { start, .. } = stage {
            self.restarter.give_up(Some(start.into_thread()));
        }
        EngineEvent::StartFailed { error, wait }
    }

    /// The engine that runs.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match &self.stage {
            Stage::Running { engine, .. } => Some(engine),
            Stage::Waiting { .. } | Stage::Starting { .. } | Stage::Stopped => None,
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.stage, Stage::Stopped)
    }

    pub(crate) fn load(&self) -> EngineLoad {
        let mut now = self.engine().map_or(self.before, Engine::load);
        if matches!(self.stage, Stage::Running { .. }) {
            now.counts += self.before.counts;
        }
        now
    }

    pub(crate) fn outage(&self) -> Option<EngineOutage> {
        let usual = self.restarter.first_start;
        let of = |cause: FailureCause, wait: Duration| {
            Some(EngineOutage { cause: Some(cause), retry_in: Some(wait + usual) })
        };
        match &self.stage {
            // The watch looks in a moment.
            Stage::Running { engine, .. } => of(FailureCause::of(&engine.failure()?), LOOK_EVERY),
            Stage::Waiting { outage, until } => {
                of(outage.cause, until.saturating_duration_since(Instant::now()))
            }
            Stage::Starting { outage, .. } => of(outage.cause, Duration::ZERO),
            Stage::Stopped => Some(EngineOutage { cause: None, retry_in: None }),
        }
    }

    pub(crate) fn restarts(&self) -> [(FailureCause, u64); FailureCause::ALL.len()] {
        std::array::from_fn(|place| (FailureCause::ALL[place], self.restarts[place]))
    }

    /// No engine is started any more.
    pub(crate) fn stop(&mut self) -> StoppedParts {
        match std::mem::replace(&mut self.stage, Stage::Stopped) {
            Stage::Running { engine, .. } => {
                self.before.counts += engine.load().counts;
                StoppedParts { engine: Some(engine), start: None }
            }
            Stage::Starting { start, .. } => StoppedParts { engine: None, start: Some(start) },
            Stage::Waiting { .. } | Stage::Stopped => StoppedParts { engine: None, start: None },
        }
    }
}

impl Stage {
    fn running(engine: Engine, now: Instant) -> Self {
        let stall = StallDetector::new(engine.step_max());
        Stage::Running { engine, stall, since: now }
    }
}
