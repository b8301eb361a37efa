//! `Fleet`: the targets of one model, their state, and the queue of calls that wait for one.
//!
//! This file has the state and the queries on it. How a permit is acquired is in `acquire`, what the end of a call
//! changes in `outcomes` and `behavior`, the metrics in `gauges`.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::output_stats::OutputTracker;
use crate::{Backend, Failure, OutputStats, TargetOutage};
use stint_types::catalog::{ImageTokens, ModelConditions};
use stint_types::chat::Request;
use stint_types::metrics::Metrics;
use stint_types::tasks::EventLoopLag;
use stint_types::units::Tokens;

use super::backlog::{Backlog, BacklogWait, PlannedCalls, PlannedWork};
use super::load::ReportedLoad;
use super::observed_behavior::ObservedBehavior;
use super::queue::AdmissionQueue;
use super::target_set::{TargetSet, TargetStatus};
use super::{ConcurrencySettings, FlowId, Permit, PermitRequest, Settings, Target};

/// The targets of one model.
#[derive(Debug)]
pub struct Fleet {
    pub(super) model: Arc<str>,
    pub(super) targets: Vec<Target>,
    /// How each of them writes.
    output_trackers: Vec<OutputTracker>,
    settings: ArcSwap<Settings>,
    /// How late this process's tasks wake; nothing if it is not measured.
    lag: OnceLock<EventLoopLag>,
    pub(super) metrics: Arc<Metrics>,
    /// What was planned for it and is not done.
    backlog: Backlog,
    state: Mutex<FleetState>,
    /// A target has asked for a pause: requests that wait look when it ends.
    pub(super) parked: Notify,
}

#[derive(Debug)]
pub(super) struct FleetState {
    /// What was seen of each target's ways.
    pub(super) behaviors: Vec<ObservedBehavior>,
    pub(super) targets: TargetSet,
    pub(super) queue: AdmissionQueue<Waiter>,
}

/// A request that waits for a permit.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: PermitRequest,
    pub(super) reply: oneshot::Sender<PermitResult>,
}

/// A permit, or why there is none.
pub(super) type PermitResult = Result<Permit, Failure>;

impl Fleet {
    /// The targets of a model, one at least. The seed decides what is left to chance.
    pub fn new(
        model: Arc<str>,
        targets: Vec<Target>,
        metrics: Arc<Metrics>,
        settings: Settings,
        seed: u64,
    ) -> Arc<Fleet> {
        assert!(!targets.is_empty(), "the configuration names a target for each model");
        let members = targets.iter().map(|target| (&*target.name, target.backend.origin()));
        let state = FleetState {
            behaviors: vec![ObservedBehavior::default(); targets.len()],
            targets: TargetSet::new(members, settings, seed, Instant::now()),
            queue: AdmissionQueue::new(settings.queue_max),
        };
        Arc::new(Fleet {
            model,
            output_trackers: targets.iter().map(|_| OutputTracker::default()).collect(),
            targets,
            settings: ArcSwap::from_pointee(settings),
            lag: OnceLock::new(),
            metrics,
            backlog: Backlog::default(),
            state: Mutex::new(state),
            parked: Notify::new(),
        })
    }

    /// From now on delays of this process itself do not count against any target. Only the first call has an effect.
    pub fn set_lag(&self, lag: &EventLoopLag) {
        self.lag.get_or_init(|| lag.clone());
    }

    pub(super) fn lag(&self) -> &EventLoopLag {
        self.lag.get_or_init(EventLoopLag::default)
    }

    /// Applies other settings. What is known of the targets stays: one that is left alone stays so, and requests that wait
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

    /// Collects what a target's client counted. A request that it sent once more by itself is a retry like any other, though
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

    /// Takes one of a target's retries, for a call that it refused within an answer; false where none is left, or none is wanted.
    pub(super) fn take_retry(&self, place: usize) -> bool {
        let is_wanted = self.settings().retry.attempts_max > 1;
        let is_taken = is_wanted && self.lock().targets.take_retry(place, Instant::now());
        if is_taken {
            let (model, name) = (&*self.model, &*self.targets[place].name);
            self.metrics.backends.retries.with_label_values(&[model, name]).inc();
        }
        is_taken
    }

    /// How its targets are treated.
    pub fn settings(&self) -> Settings {
        **self.settings.load()
    }

    /// Why its model cannot think for this request at any of its targets, though it does else.
    pub fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        let reasons: Option<Vec<_>> =
            self.targets.iter().map(|target| target.backend.thinking_ruled_out(request)).collect();
        reasons?.first().copied()
    }

    /// An upper bound of the prompt's tokens.
    pub fn prompt_tokens(&self, request: &Request) -> Tokens {
        let bounds = self.targets.iter().map(|target| target.backend.prompt_tokens(request));
        bounds.max().unwrap_or(Tokens::ZERO)
    }

    /// What an image costs at most at whichever of its targets.
    pub fn images(&self) -> ImageTokens {
        let images = self.targets.iter().map(|target| target.backend.images());
        images.reduce(ImageTokens::or_dearer).unwrap_or_default()
    }

    /// The prompt's tokens as the first of its targets counts them that can; nothing if none can.
    pub async fn count_prompt(&self, request: &Arc<Request>) -> Option<Tokens> {
        for target in &self.targets {
            if let Some(counted) = target.backend.count_prompt(request.clone()).await {
                return Some(counted);
            }
        }
        None
    }

    /// Why none of its targets takes calls now, where each of them says so itself; of them the one that may take some soonest.
    pub fn outage(&self) -> Option<TargetOutage> {
        let outages: Option<Vec<_>> = self.targets.iter().map(|target| target.backend.outage()).collect();
        outages?.into_iter().min_by_key(|outage| outage.retry_in.unwrap_or(Duration::MAX))
    }

    /// Why none of its targets may be called now: they say so themselves, or they are left alone. Nothing where one may be, or
    /// is to be tried again.
    pub fn unavailability(&self) -> Option<TargetOutage> {
        if self.status().0.iter().any(|target| target.is_available) {
            return None;
        }
        self.outage().or_else(|| {
            let rest = self.lock().targets.shortest_rest(Instant::now());
            let reason = format!("it failed lately and is left alone for another {} s", rest.as_secs() + 1);
            Some(TargetOutage { reason: reason.into(), retry_in: Some(rest) })
        })
    }

    /// Whether its model is in this process's memory, where it is to be.
    pub fn is_loaded(&self) -> Option<bool> {
        self.targets.iter().find_map(|target| target.backend.is_loaded())
    }

    /// The targets that take no calls now, by their own word.
    pub(super) fn absent_targets(&self) -> Vec<usize> {
        let targets = self.targets.iter().enumerate();
        targets.filter(|(_, target)| target.backend.outage().is_some()).map(|(place, _)| place).collect()
    }

    /// Whether that is exact, whichever of its targets serves.
    pub fn counts_exactly(&self) -> bool {
        self.targets.iter().all(|target| target.backend.counts_exactly())
    }

    /// The tokenizer of its prompts, where all its targets have the same: what one of them counted holds for each.
    pub fn tokenizer_id(&self) -> Option<&str> {
        let first = self.targets[0].tokenizer_id.as_deref();
        first.filter(|_| self.targets.iter().all(|target| target.tokenizer_id.as_deref() == first))
    }

    /// How fast the best of its targets is now, its queues included.
    pub fn conditions(&self) -> ModelConditions {
        self.conditions_as(None)
    }

    /// The same for calls of this account, which may be left without a target that others have.
    pub fn conditions_for(&self, flow: FlowId) -> ModelConditions {
        self.conditions_as(Some(flow))
    }

    fn conditions_as(&self, flow: Option<FlowId>) -> ModelConditions {
        let now = Instant::now();
        let state = self.lock();
        let soonest = state.targets.soonest(flow, now);
        let waiting = state.queue.calls();
        let line = if waiting == 0 { 0.0 } else { state.targets.queue_wait(waiting, now) };
        drop(state);
        match soonest {
            Some((place, published)) => {
                let measured = self.targets[place].backend.conditions();
                let backlog =
                    self.places().map_or(BacklogWait::default(), |places| self.backlog.wait(places));
                let wait = published + line;
                ModelConditions {
                    queue: measured.queue + wait + backlog.whole,
                    queue_least: measured.queue_least + wait + backlog.least,
                    ..measured
                }
            }
            None => ModelConditions { healthy: false, ..self.targets[0].backend.conditions() },
        }
    }

    /// The same for a model that this account cannot ask now, but soon: one of its targets has asked for a short pause.
    pub fn conditions_after_pause(&self, flow: FlowId) -> Option<ModelConditions> {
        let absent = self.absent_targets();
        let pause = self.lock().targets.short_wait(Some(flow), &absent, Instant::now());
        let pause = pause.filter(|_| self.outage().is_none())?;
        let measured = self.targets[0].backend.conditions();
        let (queue, queue_least) = (measured.queue, measured.queue_least);
        let after = |wait: f64| wait + pause.as_secs_f64();
        measured.healthy.then(|| ModelConditions {
            queue: after(queue),
            queue_least: after(queue_least),
            ..measured
        })
    }

    /// Counts what a request was planned to take, so that those planned after it know what they wait behind.
    pub fn plan_work(&self, calls: PlannedCalls) -> PlannedWork {
        self.backlog.add(calls)
    }

    /// How often its places are taken one after another until all is done that was planned; 0 where nobody knows how many it has.
    pub fn rounds(&self) -> f64 {
        self.places().map_or(0.0, |places| self.backlog.rounds(places))
    }

    /// How many calls its targets work on at once, where all of them know that.
    fn places(&self) -> Option<u32> {
        self.targets.iter().map(|target| target.backend.places()).sum()
    }

    /// Learns how a target writes.
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

    /// How every target stands, and how many requests wait.
    pub fn status(&self) -> (Vec<TargetStatus>, usize) {
        let absent = self.absent_targets();
        let mut state = self.lock();
        state.queue.retain(|waiter| !waiter.reply.is_closed());
        let (mut statuses, waiting) = (state.targets.status(Instant::now()), state.queue.len());
        drop(state);
        for (place, status) in statuses.iter_mut().enumerate() {
            status.is_available &= !absent.contains(&place);
        }
        (statuses, waiting)
    }

    /// How many calls are under way on each of its targets, by their names.
    pub fn in_flight(&self) -> impl Iterator<Item = (Arc<str>, u32)> {
        let (statuses, _) = self.status();
        self.targets.iter().zip(statuses).map(|(target, status)| (target.name.clone(), status.in_flight))
    }

    /// Records what an engine reports of its load.
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
        // Every change is complete before the lock is released, so a panic leaves no half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
