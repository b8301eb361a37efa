//! The targets of one model, and seats on them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::backend::output_stats::OutputTracker;
use crate::backend::{Backend, BehaviorTracker, Failure, Fault, OutputStats};
use crate::catalog::ModelConditions;
use crate::chat::Request;
use crate::metrics::Metrics;
use crate::tasks::EventLoopLag;
use crate::units::Tokens;

use super::acquire::{AcquireOutcome, PendingReplies, SHED_REASONS, Waiter, jittered, send_replies};
use super::load::ReportedLoad;
use super::queue::AdmissionQueue;
use super::target_set::{TargetQuery, TargetSelection, TargetSet, TargetStatus};
use super::{ConcurrencySettings, OverloadSignal, Permit, PermitRequest, Settings, Target, TripCause};

/// For such a share of the time that a request waits for a place, a trial may keep it waiting.
const TRIAL_WAIT_SHARE: f64 = 0.25;

/// The targets of one model.
#[derive(Debug)]
pub struct Fleet {
    pub(super) model: Arc<str>,
    pub(super) targets: Vec<Target>,
    /// How each of them writes.
    output_trackers: Vec<OutputTracker>,
    settings: ArcSwap<Settings>,
    /// How late this process's tasks wake; nothing where nobody measures it.
    lag: OnceLock<EventLoopLag>,
    pub(super) metrics: Arc<Metrics>,
    state: Mutex<FleetState>,
}

#[derive(Debug)]
pub(super) struct FleetState {
    /// What was seen of each target's ways.
    pub(super) behaviors: Vec<BehaviorTracker>,
    pub(super) targets: TargetSet,
    pub(super) queue: AdmissionQueue<Waiter>,
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
        let roster = TargetSet::new(members, settings, seed, Instant::now());
        let observed = vec![BehaviorTracker::default(); targets.len()];
        let state = Mutex::new(FleetState {
            behaviors: observed,
            targets: roster,
            queue: AdmissionQueue::new(settings.queue_max),
        });
        let written = targets.iter().map(|_| OutputTracker::default()).collect();
        let (settings, lag) = (ArcSwap::from_pointee(settings), OnceLock::new());
        Arc::new(Fleet { model, targets, output_trackers: written, settings, lag, metrics, state })
    }

    /// From now on the time that this process loses by itself is held against no target. The first one that is named counts.
    pub fn set_lag(&self, lag: &EventLoopLag) {
        self.lag.get_or_init(|| lag.clone());
    }

    pub(super) fn lag(&self) -> &EventLoopLag {
        self.lag.get_or_init(EventLoopLag::default)
    }

    /// Begins the counts of what may go wrong: from here on it is asked.
    pub fn zero_metrics(&self) {
        for target in &self.targets {
            let faults = Fault::ALL.map(Fault::as_str).into_iter();
            let causes = [TripCause::Failures, TripCause::Rate, TripCause::Credential]
                .map(TripCause::as_str)
                .into_iter();
            self.metrics.backends.overruns.with_label_values(&[&*self.model, &*target.name]);
            self.metrics.zero_target((&*self.model, &*target.name), faults, causes);
            for signal in [OverloadSignal::Waits, OverloadSignal::Refusals] {
                let labels = &[&*self.model, &*target.name, signal.as_str()];
                self.metrics.backends.limit_falls.with_label_values(labels);
            }
        }
        for why in SHED_REASONS {
            self.metrics.backends.sheds.with_label_values(&[&*self.model, why]);
        }
    }

    /// Treats its targets so from now on. What is known of them stays: one that rests goes on resting, and those that wait
    /// keep their places. Targets that say themselves when they are full go on doing so.
    pub fn reconfigure(&self, settings: Settings) {
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
        state.targets.reconfigure(settings);
        state.queue.set_capacity(settings.queue_max);
    }

    /// Takes what a target's client tells of its calls. What it sent once more by itself is a retry like any other, though
    /// nobody is charged for what was not read. Where nothing is left of a rate limit there are to be fewer calls.
    pub(super) fn collect_client_counts(&self, place: usize) {
        let target = &self.targets[place];
        if target.backend.take_exhausted_rate_limits() > 0 {
            self.lock().targets.record_exhausted_rate_limit(place, Instant::now());
        }
        let times = target.backend.take_resent();
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
    pub fn tokenizer_id(&self) -> Option<&str> {
        let reader = self.targets[0].tokenizer_id.as_deref();
        reader.filter(|_| self.targets.iter().all(|target| target.tokenizer_id.as_deref() == reader))
    }

    /// How fast the best of its targets is now, its queues included.
    pub fn conditions(&self) -> ModelConditions {
        let now = Instant::now();
        let state = self.lock();
        let soonest = state.targets.soonest(now);
        let waiting = state.queue.calls();
        let line = if waiting == 0 { 0.0 } else { state.targets.queue_wait(waiting, now) };
        drop(state);
        match soonest {
            Some((place, published)) => {
                let measured = self.targets[place].backend.conditions();
                ModelConditions { queue: measured.queue + published + line, ..measured }
            }
            None => ModelConditions { healthy: false, ..self.targets[0].backend.conditions() },
        }
    }

    /// How a target writes, as is learned.
    pub(super) fn output_tracker(&self, place: usize) -> &OutputTracker {
        &self.output_trackers[place]
    }

    /// How the fastest of its targets writes.
    pub fn output_stats(&self) -> OutputStats {
        let known = self.output_trackers.iter().map(OutputTracker::stats);
        known
            .max_by(|one, other| one.max_tokens_per_second().total_cmp(&other.max_tokens_per_second()))
            .unwrap_or_default()
    }

    /// How long until one of its targets may be asked again; nothing where one may be now.
    pub fn unavailable_for(&self) -> Option<Duration> {
        let mut state = self.lock();
        let rest = state.targets.unavailable_for(Instant::now())?;
        Some(jittered(rest, state.targets.random_share() / 10.0))
    }

    /// Takes places on the best target; waits for them where all are taken.
    ///
    /// # Errors
    /// At once where all targets are left alone, the queue is full or too long for the deadline; else when the time
    /// has passed. Nothing was sent.
    pub async fn acquire(self: &Arc<Self>, want: PermitRequest) -> Result<Permit, Failure> {
        let now = Instant::now();
        let until = want.deadline.min(now + self.settings().wait_max);
        let mut news = PendingReplies::new();
        let answered = self.acquire_or_enqueue(want, until, now, &mut news);
        send_replies(news);
        let mut answered = match answered? {
            AcquireOutcome::Acquired(seat) => return Ok(seat),
            AcquireOutcome::Queued(answered) => answered,
        };
        // Nobody waits for long for the sake of a trial.
        let soon = now + until.saturating_duration_since(now).mul_f64(TRIAL_WAIT_SHARE);
        let told = match tokio::time::timeout_at(soon, &mut answered).await {
            Ok(told) => Ok(told),
            Err(_) => {
                self.update(TargetSet::cancel_blocking_trials);
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
    pub fn acquire_retry(self: &Arc<Self>, want: &PermitRequest, not: &[usize]) -> Option<Permit> {
        let need = TargetQuery { affinity: want.affinity, calls: want.calls, is_retry: true, excluded: not };
        let mut state = self.lock();
        match state.targets.acquire(&need, Instant::now()) {
            TargetSelection::Selected { index: place, is_probe: probe } => {
                drop(state);
                Some(Permit::new(self.clone(), place, want, probe))
            }
            TargetSelection::Full | TargetSelection::Unavailable(_) | TargetSelection::RetryBudgetSpent => {
                None
            }
        }
    }

    /// Takes places for a second attempt beside one that is silent, on a target that works and is none of these. Never waits,
    /// and never goes before those who do. Nothing where there is none, or there were too many retries lately.
    pub fn acquire_hedge(self: &Arc<Self>, want: &PermitRequest, not: &[usize]) -> Option<Permit> {
        let need = TargetQuery { affinity: want.affinity, calls: want.calls, is_retry: true, excluded: not };
        let mut state = self.lock();
        if state.queue.len() > 0 {
            return None;
        }
        let place = state.targets.acquire_hedge(&need, Instant::now())?;
        drop(state);
        Some(Permit::new(self.clone(), place, want, false))
    }

    /// After how long a silence a second target is asked beside the first; nothing where there is no other.
    pub fn hedge_after(&self) -> Option<Duration> {
        self.settings().hedge_after.filter(|_| self.targets.len() > 1)
    }

    /// How long to wait before a call is tried again on the same targets, after so many attempts; nothing where that
    /// is too long, there were enough, or all targets failed too often to be waited for.
    pub fn retry_wait(&self, tried: u32, want: &PermitRequest) -> Option<Duration> {
        let retry = self.settings().retry;
        if tried >= retry.attempts_max {
            return None;
        }
        let now = Instant::now();
        let mut state = self.lock();
        let asked = state.targets.retry_delay(now)?;
        let wait = retry.wait(tried, asked, state.targets.random_share())?;
        (now + wait < want.deadline).then_some(wait)
    }

    /// Brings the series up to date that tell how its targets stand and how many wait.
    pub fn update_gauges(&self) {
        let (standings, waiting) = self.status();
        let (series, model) = (&self.metrics.backends, &*self.model);
        series.queue_depth.with_label_values(&[model]).set(i64::try_from(waiting).unwrap_or(i64::MAX));
        for (target, standing) in self.targets.iter().zip(standings) {
            let labels = &[model, &*target.name];
            series.state.with_label_values(labels).set(i64::from(standing.is_available));
            series.in_flight.with_label_values(labels).set(i64::from(standing.in_flight));
            if let Some(places) = standing.limit {
                series.concurrency_limit.with_label_values(labels).set(i64::from(places));
            }
        }
        self.update_limit_drops();
    }

    fn update_limit_drops(&self) {
        let falls = self.lock().targets.take_limit_drops();
        for (target, falls) in self.targets.iter().zip(falls) {
            for (signal, times) in
                [(OverloadSignal::Waits, falls.waits), (OverloadSignal::Refusals, falls.refusals)]
            {
                let labels = &[&*self.model, &*target.name, signal.as_str()];
                self.metrics.backends.limit_falls.with_label_values(labels).inc_by(times);
            }
        }
    }

    /// Takes away the series that tell how its targets stand: they are no longer asked. What was counted stays.
    pub fn remove_gauges(&self) {
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
    pub fn status(&self) -> (Vec<TargetStatus>, usize) {
        let mut state = self.lock();
        state.queue.retain(|waiter| !waiter.reply.is_closed());
        (state.targets.status(Instant::now()), state.queue.len())
    }

    /// Notes what an engine says of its load.
    pub(super) fn record_load(&self, place: usize, load: ReportedLoad) {
        self.lock().targets.record_load(place, load, Instant::now());
    }

    pub(super) fn name(&self, place: usize) -> &Arc<str> {
        &self.targets[place].name
    }

    pub(super) fn backend(&self, place: usize) -> &dyn Backend {
        &*self.targets[place].backend
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FleetState> {
        // Every change is made whole between taking and letting go of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
