//! The targets of one model, and the line of those who wait for one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::backend::{Backend, Failure, Fault};
use crate::catalog::Conditions;
use crate::chat::Request;
use crate::metrics::Metrics;
use crate::units::{Priority, Tokens};

use super::breaker::Harm;
use super::load::Load;
use super::queue::{Pushed, Queue};
use super::roster::{Answer, Fall, Need, Roster, Standing};
use super::seat::{Probe, Seat};
use super::{Cause, Settings, Target, Want};

/// The targets of one model.
#[derive(Debug)]
pub struct Fleet {
    model: Arc<str>,
    targets: Vec<Target>,
    settings: Settings,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    roster: Roster,
    queue: Queue<Waiter>,
}

/// Somebody who waits for a seat.
#[derive(Debug)]
struct Waiter {
    want: Want,
    tell: oneshot::Sender<Told>,
}

/// What comes of waiting.
type Told = Result<Seat, Failure>;

/// What is to be told to those who waited, once the lock is let go: a seat that nobody takes gives its place back, and
/// needs the lock for it.
type News = Vec<(oneshot::Sender<Told>, Told)>;

impl Fleet {
    /// The targets of a model, one at least. The seed decides what is left to chance.
    pub fn new(
        model: Arc<str>,
        targets: Vec<Target>,
        metrics: Arc<Metrics>,
        settings: Settings,
        seed: u64,
    ) -> Arc<Fleet> {
        debug_assert!(!targets.is_empty(), "a model has a target");
        let names = targets.iter().map(|target| &*target.name);
        let roster = Roster::new(names, settings, seed, Instant::now());
        let state = Mutex::new(State { roster, queue: Queue::new(settings.queue_max) });
        Arc::new(Fleet { model, targets, settings, metrics, state })
    }

    /// How its targets are treated.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its targets, in order.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// An upper bound of the prompt's tokens.
    pub fn prompt_tokens(&self, request: &Request) -> Tokens {
        let bounds = self.targets.iter().map(|target| target.backend.prompt_tokens(request));
        bounds.max().unwrap_or(Tokens::ZERO)
    }

    /// How fast the best of its targets is now, its queues included.
    pub fn conditions(&self) -> Conditions {
        let now = Instant::now();
        let state = self.lock();
        let soonest = state.roster.soonest(now);
        let waiting = state.queue.calls_before(Priority::Batch);
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
        let until = want.deadline.min(now + self.settings.wait_max);
        let (answered, evicted) = {
            let mut state = self.lock();
            match self.seated(&mut state.roster, &want, now) {
                Some(seated) => return seated,
                None => self.line_up(&mut state, want, until, now)?,
            }
        };
        if let Some(evicted) = evicted {
            let _ = evicted.tell.send(Err(self.shed("evicted", Duration::from_secs(1))));
        }
        match tokio::time::timeout_at(until, answered).await {
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
                Some(Seat::new(self.clone(), place, want.calls, probe))
            }
            Answer::Full | Answer::Resting(_) | Answer::Spent => None,
        }
    }

    /// How long to wait before a call is tried again on the same targets, after so many attempts; nothing where that
    /// is too long, there were enough, or all targets failed too often to be waited for.
    pub fn wait_again(&self, tried: u32, want: &Want) -> Option<Duration> {
        let retry = &self.settings.retry;
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

    /// A call got its first token.
    pub(super) fn first(self: &Arc<Self>, place: usize, waited: Duration, hidden: bool) {
        self.change(|roster, now| roster.first(place, waited, hidden, now));
    }

    /// A call came to a good end.
    pub(super) fn succeeded(self: &Arc<Self>, place: usize, probe: &Probe) {
        let probe = probe.take();
        self.change(|roster, now| roster.succeeded(place, probe, now));
    }

    /// A call failed through no fault of its caller.
    pub(super) fn failed(self: &Arc<Self>, place: usize, probe: &Probe, failure: &Failure) {
        let fall = Fall {
            harm: if failure.fault == Fault::Credential { Harm::Credential } else { Harm::Failed },
            overloaded: matches!(failure.fault, Fault::Overload | Fault::Timeout),
            retry_after: failure.retry_after,
        };
        if self.settings.concurrency.is_none() && failure.fault == Fault::Overload {
            // It says itself when it is full: that is how it works, and no sign of illness.
            return self.succeeded(place, probe);
        }
        let probe = probe.take();
        if let Some(cause) = self.change(|roster, now| roster.failed(place, probe, fall, now)) {
            self.announce(place, cause);
        }
    }

    /// A request leaves its places.
    pub(super) fn left(self: &Arc<Self>, place: usize, calls: u32, held: Duration, probing: bool) {
        self.change(|roster, now| {
            if probing {
                roster.probe_lost(place, now);
            }
            roster.left(place, calls, held);
        });
    }

    fn announce(&self, place: usize, cause: Cause) {
        let (model, target) = (&*self.model, &**self.name(place));
        self.metrics.backends.trips.with_label_values(&[model, target, cause.word()]).inc();
        match cause {
            Cause::Credential => tracing::error!(
                model,
                target,
                "the upstream refuses our key or our account; it is left alone until that is mended"
            ),
            Cause::Failures | Cause::Rate => {
                tracing::warn!(model, target, cause = cause.word(), "left alone for a while");
            }
        }
    }

    /// Changes what is known, and lets those go who wait and now can.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Roster, Instant) -> T) -> T {
        let now = Instant::now();
        let mut news = News::new();
        let mut state = self.lock();
        let changed = change(&mut state.roster, now);
        self.advance(&mut state, now, &mut news);
        drop(state);
        for (tell, told) in news {
            let _ = tell.send(told);
        }
        changed
    }

    fn advance(self: &Arc<Self>, state: &mut State, now: Instant, news: &mut News) {
        let mut late = Vec::new();
        loop {
            let Some((_, first)) = state.queue.first(now, &mut late) else { break };
            let want = first.want;
            if first.tell.is_closed() {
                state.queue.pop();
                continue;
            }
            let Some(seated) = self.seated(&mut state.roster, &want, now) else { break };
            news.extend(state.queue.pop().map(|waiter| (waiter.tell, seated)));
        }
        news.extend(
            late.into_iter().map(|waiter| (waiter.tell, Err(self.shed("late", Duration::from_secs(1))))),
        );
    }

    /// A seat, or why there is none; nothing where all places are taken.
    fn seated(self: &Arc<Self>, roster: &mut Roster, want: &Want, now: Instant) -> Option<Told> {
        let need = Need { beginning: want.beginning, calls: want.calls, again: false, not: &[] };
        match roster.find(&need, now) {
            Answer::To { place, probe } => Some(Ok(Seat::new(self.clone(), place, want.calls, probe))),
            Answer::Resting(wait) => {
                let wait = jittered(wait, roster.chance() / 10.0);
                Some(Err(self.refusal(
                    "resting",
                    "every target of the model is left alone for a while",
                    wait,
                )))
            }
            Answer::Full | Answer::Spent => None,
        }
    }

    /// Waits in line, unless that is hopeless.
    fn line_up(
        &self,
        state: &mut State,
        want: Want,
        until: Instant,
        now: Instant,
    ) -> Result<(oneshot::Receiver<Told>, Option<Waiter>), Failure> {
        state.queue.retain(|waiter| !waiter.tell.is_closed());
        let before = state.queue.calls_before(want.priority).saturating_add(want.calls);
        let wait =
            Duration::try_from_secs_f64(state.roster.wait_behind(before, now)).unwrap_or(Duration::MAX);
        let chance = state.roster.chance();
        if wait > until.saturating_duration_since(now) {
            return Err(self.shed("hopeless", jittered(wait.min(self.settings.wait_max), chance)));
        }
        let (tell, answered) = oneshot::channel();
        match state.queue.push(want.priority, until, want.calls, Waiter { want, tell }) {
            Pushed::In => Ok((answered, None)),
            Pushed::InPlaceOf(other) => Ok((answered, Some(other))),
            Pushed::Full(_) => {
                let wait = wait.clamp(Duration::from_secs(1), self.settings.wait_max);
                Err(self.shed("full", jittered(wait, chance)))
            }
        }
    }

    fn shed(&self, why: &'static str, retry_after: Duration) -> Failure {
        self.refusal(why, "too many requests wait for the model", retry_after)
    }

    fn refusal(&self, why: &'static str, message: &str, retry_after: Duration) -> Failure {
        self.metrics.backends.sheds.with_label_values(&[&*self.model, why]).inc();
        let failure = Failure::new(Fault::Overload, message).unsent().elsewhere();
        Failure { retry_after: Some(retry_after), ..failure }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is made whole between taking and letting go of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time and a share of it more, so that those who are told it do not come back at once.
fn jittered(time: Duration, share: f64) -> Duration {
    time.saturating_add(Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
