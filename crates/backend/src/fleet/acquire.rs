//! How a permit is acquired: at once, after a wait in the queue, for a retry, or for a hedge.
//!
//! Waiting callers get their replies once the lock is released. If a caller has gone, its permit is dropped. That releases
//! the place on the target, and needs the lock.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{Failure, Fault, UPSTREAM_RATE_LIMITED};

use super::fleet::{FleetState, PermitResult, Waiter};
use super::queue::PushOutcome;
use super::target_set::{TargetSelection, TargetSet};
use super::{Fleet, FlowId, Permit, PermitRequest};

/// For such a share of the time that a request waits for a place, a trial may keep it waiting.
const TRIAL_WAIT_SHARE: f64 = 0.25;

/// What somebody is told to wait at least whom the queue could not hold for as long as was needed.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);

/// Why there may be no place, in the words of metrics.
pub(super) const SHED_REASONS: [&str; 5] = ["late", "resting", "hopeless", "evicted", "full"];

/// Replies to those who waited, to be sent once the lock is released.
type PendingReplies = Vec<(oneshot::Sender<PermitResult>, PermitResult)>;

/// What came of a request for a permit.
enum AcquireOutcome {
    /// A place was free.
    Acquired(Permit),
    /// It waits for this reply.
    Queued(oneshot::Receiver<PermitResult>),
}

impl Fleet {
    /// How long until one of its targets may be asked again; nothing if one may be now, or if nobody knows.
    pub fn unavailable_for(&self) -> Option<Duration> {
        self.unavailable_as(None)
    }

    /// The same for calls of this account, which may be left without a target that others have.
    pub fn unavailable_for_account(&self, flow: FlowId) -> Option<Duration> {
        self.unavailable_as(Some(flow))
    }

    fn unavailable_as(&self, flow: Option<FlowId>) -> Option<Duration> {
        let absent = self.outage().and_then(|outage| outage.retry_in);
        let mut state = self.lock();
        let rest = state.targets.unavailable_for(flow, Instant::now()).max(absent)?;
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
        let flow = want.flow;
        let mut replies = PendingReplies::new();
        let outcome = self.acquire_or_enqueue(want, until, now, &mut replies);
        send_replies(replies);
        let mut reply = match outcome? {
            AcquireOutcome::Acquired(permit) => return Ok(permit),
            AcquireOutcome::Queued(reply) => reply,
        };
        // Nobody waits for long for the sake of a trial.
        let soon = now + until.saturating_duration_since(now).mul_f64(TRIAL_WAIT_SHARE);
        let replied = match self.reply_before(soon, flow, &mut reply).await {
            Some(replied) => Some(replied),
            None => {
                self.update(TargetSet::cancel_blocking_trials);
                self.reply_before(until, flow, &mut reply).await
            }
        };
        replied.unwrap_or_else(|| Err(self.shed("late", RETRY_AFTER_MIN)))
    }

    /// Waits for the reply to a request in the queue. When a pause ends that a target has asked for, nothing else may happen
    /// that gives out its places.
    async fn reply_before(
        self: &Arc<Self>,
        until: Instant,
        flow: FlowId,
        reply: &mut oneshot::Receiver<PermitResult>,
    ) -> Option<PermitResult> {
        loop {
            let mut parked = pin!(self.parked.notified());
            parked.as_mut().enable();
            let now = Instant::now();
            let pause = self.short_pause(&self.lock(), flow, now);
            let look = pause.map_or(until, |pause| until.min(now + pause));
            tokio::select! {
                biased;
                replied = &mut *reply => return replied.ok(),
                () = parked => {}
                () = tokio::time::sleep_until(look) => {
                    if look >= until {
                        return None;
                    }
                    self.update(|_, _| ());
                }
            }
        }
    }

    /// Whether its targets are left alone, by this account at least, for nothing but a `Retry-After` of their own.
    pub fn is_rate_limited(&self, flow: FlowId) -> bool {
        self.outage().is_none() && self.lock().targets.is_parked(flow, Instant::now())
    }

    /// Whether its targets are left alone, by this account at least, since each refuses our credential.
    pub fn has_refused_credential(&self, flow: FlowId) -> bool {
        self.lock().targets.has_refused_credential(flow, Instant::now())
    }

    /// Takes places for one more attempt, on a target that is none of these. Never waits: under pressure those who were
    /// not tried yet go first. Nothing if there is none, or there were too many retries lately.
    pub fn acquire_retry(self: &Arc<Self>, want: &PermitRequest, not: &[usize]) -> Option<Permit> {
        let not = [not, &self.absent_targets()].concat();
        let need = want.query(true, &not);
        let mut state = self.lock();
        match state.targets.acquire(&need, Instant::now()) {
            TargetSelection::Selected { index: place, is_probe: probe } => {
                drop(state);
                Some(Permit::new(self.clone(), place, want, probe))
            }
            TargetSelection::Full
            | TargetSelection::Parked
            | TargetSelection::Unavailable(_)
            | TargetSelection::RetryBudgetSpent => None,
        }
    }

    /// Acquires a permit for a second attempt beside one that is silent, on an available target that is none of `not`.
    /// Never waits, and never overtakes calls that wait. `None` if there is no such target, or there were too many
    /// retries lately.
    pub fn acquire_hedge(self: &Arc<Self>, want: &PermitRequest, not: &[usize]) -> Option<Permit> {
        let not = [not, &self.absent_targets()].concat();
        let need = want.query(true, &not);
        let mut state = self.lock();
        if state.queue.len() > 0 {
            return None;
        }
        let place = state.targets.acquire_hedge(&need, Instant::now())?;
        drop(state);
        Some(Permit::new(self.clone(), place, want, false))
    }

    /// After how long a silence a second target is called in parallel; nothing if there is no other.
    pub fn hedge_after(&self) -> Option<Duration> {
        self.settings().hedge_after.filter(|_| self.targets.len() > 1)
    }

    /// How long to wait before a call is retried on the same targets, after so many attempts; nothing if that
    /// is too long, there were enough, or all targets failed too often to be waited for.
    pub fn retry_wait(&self, tried: u32, want: &PermitRequest) -> Option<Duration> {
        let retry = self.settings().retry;
        if tried >= retry.attempts_max {
            return None;
        }
        let now = Instant::now();
        let mut state = self.lock();
        let asked = state.targets.retry_delay(want.flow, now)?;
        let wait = retry.wait(tried, asked, state.targets.random_share())?;
        (now + wait < want.deadline).then_some(wait)
    }

    /// Changes what is known of the targets, and gives permits to those who wait and now can have one.
    pub(super) fn update<T>(self: &Arc<Self>, change: impl FnOnce(&mut TargetSet, Instant) -> T) -> T {
        let now = Instant::now();
        let mut replies = PendingReplies::new();
        let mut state = self.lock();
        let changed = change(&mut state.targets, now);
        self.dispatch_waiters(&mut state, now, &mut replies);
        drop(state);
        send_replies(replies);
        changed
    }

    fn dispatch_waiters(
        self: &Arc<Self>,
        state: &mut FleetState,
        now: Instant,
        replies: &mut PendingReplies,
    ) {
        let mut late = Vec::new();
        while let Some(first) = state.queue.peek(now, &mut late) {
            let want = first.request;
            if first.reply.is_closed() {
                state.queue.pop();
                continue;
            }
            let Some(permit) = self.try_acquire(&mut state.targets, &want, now) else { break };
            replies.extend(state.queue.pop().map(|waiter| (waiter.reply, permit)));
        }
        replies
            .extend(late.into_iter().map(|waiter| (waiter.reply, Err(self.shed("late", RETRY_AFTER_MIN)))));
    }

    /// A permit, or why there is none; nothing if all places are taken.
    fn try_acquire(
        self: &Arc<Self>,
        targets: &mut TargetSet,
        want: &PermitRequest,
        now: Instant,
    ) -> Option<PermitResult> {
        let absent = self.absent_targets();
        let need = want.query(false, &absent);
        match targets.acquire(&need, now) {
            TargetSelection::Selected { index: place, is_probe: probe } => {
                Some(Ok(Permit::new(self.clone(), place, want, probe)))
            }
            TargetSelection::Unavailable(_) if targets.has_refused_credential(want.flow, now) => {
                Some(Err(self.credential_refusal()))
            }
            TargetSelection::Unavailable(wait) => {
                let back = self.outage().and_then(|outage| outage.retry_in);
                let wait = wait.max(back.unwrap_or(Duration::ZERO));
                let is_parked = back.is_none() && targets.is_parked(want.flow, now);
                let wait = jittered(wait, targets.random_share() / 10.0);
                let refused =
                    self.refusal("resting", "every target of the model is left alone for a while", wait);
                Some(Err(if is_parked { refused.code(UPSTREAM_RATE_LIMITED) } else { refused }))
            }
            TargetSelection::Full | TargetSelection::Parked | TargetSelection::RetryBudgetSpent => None,
        }
    }

    /// A permit, or a place in the queue. Nobody overtakes those whose turn it is.
    fn acquire_or_enqueue(
        self: &Arc<Self>,
        want: PermitRequest,
        until: Instant,
        now: Instant,
        replies: &mut PendingReplies,
    ) -> Result<AcquireOutcome, Failure> {
        let mut state = self.lock();
        self.dispatch_waiters(&mut state, now, replies);
        if let Some(permit) = self.try_acquire_in_turn(&mut state, &want, now) {
            return permit.map(AcquireOutcome::Acquired);
        }
        // Nobody is refused for the sake of a trial.
        if self.is_under_pressure(&state, &want, until, now) && state.targets.cancel_blocking_trials(now) {
            self.dispatch_waiters(&mut state, now, replies);
            if let Some(permit) = self.try_acquire_in_turn(&mut state, &want, now) {
                return permit.map(AcquireOutcome::Acquired);
            }
        }
        self.enqueue(&mut state, want, until, now, replies).map(AcquireOutcome::Queued)
    }

    /// A permit for a new request, where it is nobody else's turn.
    fn try_acquire_in_turn(
        self: &Arc<Self>,
        state: &mut FleetState,
        want: &PermitRequest,
        now: Instant,
    ) -> Option<PermitResult> {
        if state.queue.calls_before(want.priority, want.flow) > 0 {
            return None;
        }
        let permit = self.try_acquire(&mut state.targets, want, now)?;
        state.queue.record_bypass(want.priority, want.flow, want.calls);
        Some(permit)
    }

    /// True if the queue is so long that a request may be refused soon.
    fn is_under_pressure(
        &self,
        state: &FleetState,
        want: &PermitRequest,
        until: Instant,
        now: Instant,
    ) -> bool {
        let is_half_full = state.queue.len() * 2 >= self.settings().queue_max;
        is_half_full || queue_wait(state, want, now) > until.saturating_duration_since(now)
    }

    /// Waits in the queue, unless that is hopeless.
    fn enqueue(
        &self,
        state: &mut FleetState,
        want: PermitRequest,
        until: Instant,
        now: Instant,
        replies: &mut PendingReplies,
    ) -> Result<oneshot::Receiver<PermitResult>, Failure> {
        state.queue.retain(|waiter| !waiter.reply.is_closed());
        let pause = self.short_pause(state, want.flow, now).unwrap_or_default();
        let wait = queue_wait(state, &want, now).saturating_add(pause);
        let chance = state.targets.random_share();
        if pause > until.saturating_duration_since(now) {
            let why = "every target of the model is left alone for a while";
            return Err(self.refusal("resting", why, jittered(pause, chance)).code(UPSTREAM_RATE_LIMITED));
        }
        if wait > until.saturating_duration_since(now) {
            return Err(self.shed("hopeless", jittered(wait.min(self.settings().wait_max), chance)));
        }
        let (sender, reply) = oneshot::channel();
        let waiter = Waiter { request: want, reply: sender };
        match state.queue.push(want.priority, want.flow, until, want.calls, waiter) {
            PushOutcome::Queued => Ok(reply),
            PushOutcome::Evicted(other) => {
                replies
                    .push((other.reply, Err(self.shed("evicted", jittered(RETRY_AFTER_MIN, 2.0 * chance)))));
                Ok(reply)
            }
            PushOutcome::Full(_) => {
                // A clamp would panic where the longest wait is shorter than that.
                let wait = wait.min(self.settings().wait_max).max(RETRY_AFTER_MIN);
                Err(self.shed("full", jittered(wait, chance)))
            }
        }
    }

    /// How long calls of this account wait for a short pause to end that a target has asked for.
    fn short_pause(&self, state: &FleetState, flow: FlowId, now: Instant) -> Option<Duration> {
        state.targets.short_wait(Some(flow), &self.absent_targets(), now)
    }

    fn shed(&self, why: &'static str, retry_after: Duration) -> Failure {
        self.refusal(why, "too many requests wait for the model", retry_after)
    }

    /// Its targets stay away until the operator has mended what they refuse, so nobody is told when to come back.
    fn credential_refusal(&self) -> Failure {
        self.count_shed("resting");
        let message =
            "every target of the model refuses our key or our account, and is left alone for a while";
        Failure::new(Fault::Credential, message).unsent()
    }

    fn refusal(&self, why: &'static str, message: &str, retry_after: Duration) -> Failure {
        self.count_shed(why);
        let failure = Failure::new(Fault::Overload, message).unsent().retry_elsewhere();
        Failure { retry_after: Some(retry_after), ..failure }
    }

    fn count_shed(&self, why: &'static str) {
        self.metrics.backends.sheds.with_label_values(&[&*self.model, why]).inc();
    }
}

/// How long a request waits until those before it have had their places.
fn queue_wait(state: &FleetState, want: &PermitRequest, now: Instant) -> Duration {
    let before = state.queue.calls_before(want.priority, want.flow).saturating_add(want.calls);
    Duration::try_from_secs_f64(state.targets.queue_wait(before, now)).unwrap_or(Duration::MAX)
}

/// A permit that nobody takes gives its place back.
fn send_replies(replies: PendingReplies) {
    for (sender, reply) in replies {
        let _ = sender.send(reply);
    }
}

/// A time plus a random share of it, so that callers that are given it do not all come back at once.
fn jittered(time: Duration, share: f64) -> Duration {
    time.saturating_add(Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(Duration::ZERO))
}
