//! The line of those who wait for a seat.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::backend::{Failure, Fault};

use super::fleet::FleetState;
use super::queue::PushOutcome;
use super::target_set::{TargetQuery, TargetSelection, TargetSet};
use super::{Fleet, Permit, PermitRequest};

/// Somebody who waits for a seat.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: PermitRequest,
    pub(super) reply: oneshot::Sender<PermitResult>,
}

/// What comes of waiting.
pub(super) type PermitResult = Result<Permit, Failure>;

/// What is to be told to those who waited, once the lock is let go: a seat that nobody takes gives its place back, and
/// needs the lock for it.
pub(super) type PendingReplies = Vec<(oneshot::Sender<PermitResult>, PermitResult)>;

/// What came of wanting a seat.
pub(super) enum AcquireOutcome {
    /// One was free.
    Acquired(Permit),
    /// It will be told.
    Queued(oneshot::Receiver<PermitResult>),
}

/// Tells it. A seat that nobody takes gives its place back.
pub(super) fn send_replies(news: PendingReplies) {
    for (tell, told) in news {
        let _ = tell.send(told);
    }
}

impl Fleet {
    /// Changes what is known, and lets those go who wait and now can.
    pub(super) fn update<T>(self: &Arc<Self>, change: impl FnOnce(&mut TargetSet, Instant) -> T) -> T {
        let now = Instant::now();
        let mut news = PendingReplies::new();
        let mut state = self.lock();
        let changed = change(&mut state.targets, now);
        self.dispatch_waiters(&mut state, now, &mut news);
        drop(state);
        send_replies(news);
        changed
    }

    fn dispatch_waiters(self: &Arc<Self>, state: &mut FleetState, now: Instant, news: &mut PendingReplies) {
        let mut late = Vec::new();
        while let Some(first) = state.queue.peek(now, &mut late) {
            let want = first.request;
            if first.reply.is_closed() {
                state.queue.pop();
                continue;
            }
            let Some(seated) = self.try_acquire(&mut state.targets, &want, now) else { break };
            news.extend(state.queue.pop().map(|waiter| (waiter.reply, seated)));
        }
        news.extend(
            late.into_iter().map(|waiter| (waiter.reply, Err(self.shed("late", Duration::from_secs(1))))),
        );
    }

    /// A seat, or why there is none; nothing where all places are taken.
    fn try_acquire(
        self: &Arc<Self>,
        roster: &mut TargetSet,
        want: &PermitRequest,
        now: Instant,
    ) -> Option<PermitResult> {
        let need = TargetQuery { affinity: want.affinity, calls: want.calls, is_retry: false, excluded: &[] };
        match roster.acquire(&need, now) {
            TargetSelection::Selected { index: place, is_probe: probe } => {
                Some(Ok(Permit::new(self.clone(), place, want, probe)))
            }
            TargetSelection::Unavailable(wait) => {
                let wait = jittered(wait, roster.random_share() / 10.0);
                Some(Err(self.refusal(
                    "resting",
                    "every target of the model is left alone for a while",
                    wait,
                )))
            }
            TargetSelection::Full | TargetSelection::RetryBudgetSpent => None,
        }
    }

    /// A seat, or a place in the line. Nobody overtakes those whose turn it is.
    pub(super) fn acquire_or_enqueue(
        self: &Arc<Self>,
        want: PermitRequest,
        until: Instant,
        now: Instant,
        news: &mut PendingReplies,
    ) -> Result<AcquireOutcome, Failure> {
        let mut state = self.lock();
        self.dispatch_waiters(&mut state, now, news);
        if let Some(seated) = self.try_acquire_in_turn(&mut state, &want, now) {
            return seated.map(AcquireOutcome::Acquired);
        }
        // Nobody is refused for the sake of a trial.
        if self.is_under_pressure(&state, &want, until, now) && state.targets.cancel_blocking_trials(now) {
            self.dispatch_waiters(&mut state, now, news);
            if let Some(seated) = self.try_acquire_in_turn(&mut state, &want, now) {
                return seated.map(AcquireOutcome::Acquired);
            }
        }
        self.enqueue(&mut state, want, until, now, news).map(AcquireOutcome::Queued)
    }

    /// A seat for who comes now, where nobody else's turn it is.
    fn try_acquire_in_turn(
        self: &Arc<Self>,
        state: &mut FleetState,
        want: &PermitRequest,
        now: Instant,
    ) -> Option<PermitResult> {
        if state.queue.calls_before(want.priority, want.flow) > 0 {
            return None;
        }
        let seated = self.try_acquire(&mut state.targets, want, now)?;
        state.queue.record_bypass(want.priority, want.flow, want.calls);
        Some(seated)
    }

    /// True where the line is so long that somebody may be refused soon.
    fn is_under_pressure(
        &self,
        state: &FleetState,
        want: &PermitRequest,
        until: Instant,
        now: Instant,
    ) -> bool {
        let is_half_full = state.queue.len() * 2 >= self.settings().queue_max;
        is_half_full || expected_wait(state, want, now) > until.saturating_duration_since(now)
    }

    /// Waits in line, unless that is hopeless.
    fn enqueue(
        &self,
        state: &mut FleetState,
        want: PermitRequest,
        until: Instant,
        now: Instant,
        news: &mut PendingReplies,
    ) -> Result<oneshot::Receiver<PermitResult>, Failure> {
        state.queue.retain(|waiter| !waiter.reply.is_closed());
        let wait = expected_wait(state, &want, now);
        let chance = state.targets.random_share();
        if wait > until.saturating_duration_since(now) {
            return Err(self.shed("hopeless", jittered(wait.min(self.settings().wait_max), chance)));
        }
        let (tell, answered) = oneshot::channel();
        match state.queue.push(
            want.priority,
            want.flow,
            until,
            want.calls,
            Waiter { request: want, reply: tell },
        ) {
            PushOutcome::Queued => Ok(answered),
            PushOutcome::Evicted(other) => {
                news.push((
                    other.reply,
                    Err(self.shed("evicted", jittered(Duration::from_secs(1), 2.0 * chance))),
                ));
                Ok(answered)
            }
            PushOutcome::Full(_) => {
                let wait = wait.clamp(Duration::from_secs(1), self.settings().wait_max);
                Err(self.shed("full", jittered(wait, chance)))
            }
        }
    }

    pub(super) fn shed(&self, why: &'static str, retry_after: Duration) -> Failure {
        self.refusal(why, "too many requests wait for the model", retry_after)
    }

    fn refusal(&self, why: &'static str, message: &str, retry_after: Duration) -> Failure {
        self.metrics.backends.sheds.with_label_values(&[&*self.model, why]).inc();
        let failure = Failure::new(Fault::Overload, message).unsent().retry_elsewhere();
        Failure { retry_after: Some(retry_after), ..failure }
    }
}

/// How long a request waits until it has its place.
fn expected_wait(state: &FleetState, want: &PermitRequest, now: Instant) -> Duration {
    let before = state.queue.calls_before(want.priority, want.flow).saturating_add(want.calls);
    Duration::try_from_secs_f64(state.targets.queue_wait(before, now)).unwrap_or(Duration::MAX)
}

/// Why there may be no place, in the words of metrics.
pub(super) const SHED_REASONS: [&str; 5] = ["late", "resting", "hopeless", "evicted", "full"];

/// A time and a share of it more, so that those who are told it do not come back at once.
pub(super) fn jittered(time: Duration, share: f64) -> Duration {
    time.saturating_add(Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(Duration::ZERO))
}
