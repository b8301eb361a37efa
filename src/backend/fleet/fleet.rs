//! The targets of one model, and seats on them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::backend::writing::Written;
use crate::backend::{Backend, Failure, Fault, Observed, Writing};
use crate::catalog::Conditions;
use crate::chat::Request;
use crate::metrics::Metrics;
use crate::tasks::Lag;
use crate::units::Tokens;

use super::line::{Joined, News, SHEDS, Waiter, jittered, tell};
use super::load::Load;
use super::queue::Queue;
use super::roster::{Answer, Need, Roster, Standing};
use super::{Cause, ConcurrencySettings, Seat, Settings, Signal, Target, Want};

/// For such a share of the time that a request waits for a place, a trial may keep it waiting.
const TRIAL_SHARE: f64 = 0.25;

/// The targets of one model.
#[derive(Debug)]
pub struct Fleet {
    pub(super) model: Arc<str>,
    pub(super) targets: Vec<Target>,
    /// How each of them writes.
    written: Vec<Written>,
    settings: ArcSwap<Settings>,
    /// How late this process's tasks wake; nothing where nobody measures it.
    lag: OnceLock<Lag>,
    pub(super) metrics: Arc<Metrics>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    /// What was seen of each target's ways.
    pub(super) observed: Vec<Observed>,
    pub(super) roster: Roster,
    pub(super) queue: Queue<Waiter>,
}

impl Fleet {
    /// The targets of a model, one at least. The seed decides what is left to chance.
    pub fn new(
        model: Arc<str>,
        targets: Vec<Target>,
        metrics: Arc<Metrics>,
        settings: Settings,
        seed: u64,
    ) -> Arc<Fleet> {
        assert!(!targets.is_empty(), "whoever declares a model says where it is served");
        let members = targets.iter().map(|target| (&*target.name, target.backend.origin()));
        let roster = Roster::new(members, settings, seed, Instant::now());
        let observed = vec![Observed::default(); targets.len()];
        let state = Mutex::new(State { observed, roster, queue: Queue::new(settings.queue_max) });
        let written = targets.iter().map(|_| Written::default()).collect();
        let (settings, lag) = (ArcSwap::from_pointee(settings), OnceLock::new());
        Arc::new(Fleet { model, targets, written, settings, lag, metrics, state })
    }

    /// From now on the time that this process loses by itself is held against no target. The first one that is named counts.
    pub fn allow_for(&self, lag: &Lag) {
        self.lag.get_or_init(|| lag.clone());
    }

    pub(super) fn lag(&self) -> &Lag {
        self.lag.get_or_init(Lag::default)
    }

    /// Begins the counts of what may go wrong: from here on it is asked.
    pub fn begin(&self) {
        for target in &self.targets {
            let faults = Fault::ALL.map(Fault::word).into_iter();
            let causes = [Cause::Failures, Cause::Rate, Cause::Credential].map(Cause::word).into_iter();
            self.metrics.backends.overruns.with_label_values(&[&*self.model, &*target.name]);
            self.metrics.begin_target((&*self.model, &*target.name), faults, causes);
            for signal in [Signal::Waits, Signal::Refusals] {
                let labels = &[&*self.model, &*target.name, signal.word()];
                self.metrics.backends.limit_falls.with_label_values(labels);
            }
        }
        for why in SHEDS {
            self.metrics.backends.sheds.with_label_values(&[&*self.model, why]);
        }
    }

    /// Treats its targets so from now on. What is known of them stays: one that rests goes on resting, and those that wait
    /// keep their places. Targets that say themselves when they are full go on doing so.
    pub fn treat(&self, settings: Settings) {
        let before = self.settings();
        // What lowers a limit belongs to the backend.
        let concurrency = before.concurrency.zip(settings.concurrency);
        let concurrency =
            concurrency.map(|(before, now)| ConcurrencySettings { signal: before.signal, ..now });
        let settings = Settings { concurrency, ..settings };
        if settings == before {
            return;
        }
        self.settings.store(Arc::new(settings));
        let mut state = self.lock();
        state.roster.treat(settings);
        state.queue.resize(settings.queue_max);
    }

    /// Takes what a target's client tells of its calls. What it sent once more by itself is a retry like any other, though
    /// nobody is charged for what was not read. Where nothing is left of a rate limit there are to be fewer calls.
    pub(super) fn hear(&self, place: usize) {
        let target = &self.targets[place];
        if target.backend.rate_limits_spent() > 0 {
            self.lock().roster.spent(place, Instant::now());
        }
        let times = target.backend.resent();
        if times > 0 {
            let (model, name) = (&*self.model, &*target.name);
            tracing::info!(model, target = name, times, "sent once more: the connection had ended unread");
            self.metrics.backends.retries.with_label_values(&[model, name]).inc_by(times);
        }
    }

    /// How its targets are treated.
    pub fn settings(&self) -> Settings {
        **self.settings.load()
    }

    /// An upper bound of the prompt's tokens.
    pub fn prompt_tokens(&self, request: &Request) -> Tokens {
        let bounds = self.targets.iter().map(|target| target.backend.prompt_tokens(request));
        bounds.max().unwrap_or(Tokens::ZERO)
    }

    /// The prompt's tokens as the first of its targets counts them that can; nothing where none can.
    pub async fn count_prompt(&self, request: &Arc<Request>) -> Option<Tokens> {
        for target in &self.targets {
            if let Some(counted) = target.backend.count_prompt(request.clone()).await {
                return Some(counted);
            }
        }
        None
    }

    /// Why it cannot be asked until another configuration, where that is so.
    pub fn unavailable(&self) -> Option<&str> {
        self.targets.iter().find_map(|target| target.backend.unavailable())
    }

    /// Whether that is exact, whichever of its targets serves.
    pub fn counts_exactly(&self) -> bool {
        self.targets.iter().all(|target| target.backend.counts_exactly())
    }

    /// Who counts its prompts, where that is the same one at all its targets: what one of them counted holds for each.
    pub fn reader(&self) -> Option<&str> {
        let reader = self.targets[0].reader.as_deref();
        reader.filter(|_| self.targets.iter().all(|target| target.reader.as_deref() == reader))
    }

    /// How fast the best of its targets is now, its queues included.
    pub fn conditions(&self) -> Conditions {
        let now = Instant::now();
        let state = self.lock();
        let soonest = state.roster.soonest(now);
        let waiting = state.queue.calls();
        let line = if waiting == 0 { 0.0 } else { state.roster.wait_behind(waiting, now) };
        drop(state);
        match soonest {
            Some((place, published)) => {
                let measured = self.targets[place].backend.conditions();
                Conditions { queue: measured.queue + published + line, ..measured }
            }
            None => Conditions { healthy: false, ..self.targets[0].backend.conditions() },
        }
    }

    /// How a target writes, as is learned.
    pub(super) fn written(&self, place: usize) -> &Written {
        &self.written[place]
    }

    /// How the fastest of its targets writes.
    pub fn writing(&self) -> Writing {
        let known = self.written.iter().map(Written::known);
        known.max_by(|one, other| one.per_second().total_cmp(&other.per_second())).unwrap_or_default()
    }

    /// How long until one of its targets may be asked again; nothing where one may be now.
    pub fn rest(&self) -> Option<Duration> {
        let mut state = self.lock();
        let rest = state.roster.rest(Instant::now())?;
        Some(jittered(rest, state.roster.chance() / 10.0))
    }

    /// Takes places on the best target; waits for them where all are taken.
    ///
    /// # Errors
    /// At once where all targets are left alone, the queue is full or too long for the deadline; else when the time
    /// has passed. Nothing was sent.
    pub async fn board(self: &Arc<Self>, want: Want) -> Result<Seat, Failure> {
        let now = Instant::now();
        let until = want.deadline.min(now + self.settings().wait_max);
        let mut news = News::new();
        let answered = self.join(want, until, now, &mut news);
        tell(news);
        let mut answered = match answered? {
            Joined::Seated(seat) => return Ok(seat),
            Joined::InLine(answered) => answered,
        };
        // Nobody waits for long for the sake of a trial.
        let soon = now + until.saturating_duration_since(now).mul_f64(TRIAL_SHARE);
        let told = match tokio::time::timeout_at(soon, &mut answered).await {
            Ok(told) => Ok(told),
            Err(_) => {
                self.change(Roster::make_way);
                tokio::time::timeout_at(until, answered).await
            }
        };
        match told {
            Ok(Ok(told)) => told,
            _ => Err(self.shed("late", Duration::from_secs(1))),
        }
    }

    /// Takes places for one more attempt, on a target that is none of these. Never waits: under pressure those who were
    /// not tried yet go first. Nothing where there is none, or there were too many retries lately.
    pub fn board_again(self: &Arc<Self>, want: &Want, not: &[usize]) -> Option<Seat> {
        let need = Need { beginning: want.beginning, calls: want.calls, again: true, not };
        let mut state = self.lock();
        match state.roster.find(&need, Instant::now()) {
            Answer::To { place, probe } => {
                drop(state);
                Some(Seat::new(self.clone(), place, want, probe))
            }
            Answer::Full | Answer::Resting(_) | Answer::Spent => None,
        }
    }

    /// Takes places for a second attempt beside one that is silent, on a target that works and is none of these. Never waits,
    /// and never goes before those who do. Nothing where there is none, or there were too many retries lately.
    pub fn board_beside(self: &Arc<Self>, want: &Want, not: &[usize]) -> Option<Seat> {
        let need = Need { beginning: want.beginning, calls: want.calls, again: true, not };
        let mut state = self.lock();
        if state.queue.len() > 0 {
            return None;
        }
        let place = state.roster.find_beside(&need, Instant::now())?;
        drop(state);
        Some(Seat::new(self.clone(), place, want, false))
    }

    /// After how long a silence a second target is asked beside the first; nothing where there is no other.
    pub fn hedge_after(&self) -> Option<Duration> {
        self.settings().hedge_after.filter(|_| self.targets.len() > 1)
    }

    /// How long to wait before a call is tried again on the same targets, after so many attempts; nothing where that
    /// is too long, there were enough, or all targets failed too often to be waited for.
    pub fn wait_again(&self, tried: u32, want: &Want) -> Option<Duration> {
        let retry = self.settings().retry;
        if tried >= retry.attempts_max {
            return None;
        }
        let now = Instant::now();
        let mut state = self.lock();
        let asked = state.roster.comes_back(now)?;
        let wait = retry.wait(tried, asked, state.roster.chance())?;
        (now + wait < want.deadline).then_some(wait)
    }

    /// Brings the series up to date that tell how its targets stand and how many wait.
    pub fn show(&self) {
        let (standings, waiting) = self.standing();
        let (series, model) = (&self.metrics.backends, &*self.model);
        series.queue_depth.with_label_values(&[model]).set(i64::try_from(waiting).unwrap_or(i64::MAX));
        for (target, standing) in self.targets.iter().zip(standings) {
            let labels = &[model, &*target.name];
            series.state.with_label_values(labels).set(i64::from(standing.works));
            series.in_flight.with_label_values(labels).set(i64::from(standing.calls));
            if let Some(places) = standing.places {
                series.concurrency_limit.with_label_values(labels).set(i64::from(places));
            }
        }
        self.show_falls();
    }

    fn show_falls(&self) {
        let falls = self.lock().roster.falls();
        for (target, falls) in self.targets.iter().zip(falls) {
            for (signal, times) in [(Signal::Waits, falls.waits), (Signal::Refusals, falls.refusals)] {
                let labels = &[&*self.model, &*target.name, signal.word()];
                self.metrics.backends.limit_falls.with_label_values(labels).inc_by(times);
            }
        }
    }

    /// Takes away the series that tell how its targets stand: they are no longer asked. What was counted stays.
    pub fn hide(&self) {
        let (series, model) = (&self.metrics.backends, &*self.model);
        // What was never shown need not be taken away.
        let _ = series.queue_depth.remove_label_values(&[model]);
        for target in &self.targets {
            for gauge in [&series.state, &series.in_flight, &series.concurrency_limit] {
                let _ = gauge.remove_label_values(&[model, &*target.name]);
            }
        }
    }

    /// How every target stands, and how many requests wait.
    pub fn standing(&self) -> (Vec<Standing>, usize) {
        let mut state = self.lock();
        state.queue.retain(|waiter| !waiter.tell.is_closed());
        (state.roster.standing(Instant::now()), state.queue.len())
    }

    /// Notes what an engine says of its load.
    pub(super) fn loaded(&self, place: usize, load: Load) {
        self.lock().roster.loaded(place, load, Instant::now());
    }

    pub(super) fn name(&self, place: usize) -> &Arc<str> {
        &self.targets[place].name
    }

    pub(super) fn backend(&self, place: usize) -> &dyn Backend {
        &*self.targets[place].backend
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is made whole between taking and letting go of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
