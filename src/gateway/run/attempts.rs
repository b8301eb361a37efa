//! Where a request goes, and where it goes next when an attempt failed: to another target of the same model, to the next
//! offer, or to the same target again after a pause.
//!
//! This is the only place that retries, but for the later calls of an answer that are refused: the driver of a choice repeats
//! them, since what came before would be lost. What a failed attempt may have cost is paid from the reservation, which is extended
//! first.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::execute::ChoiceProgress;
use crate::gateway::request::{RequestContext, RequestReservation};
use stint_backend::fleet::{Permit, PermitRequest};
use stint_backend::{Failure, Retry};
use stint_types::catalog::{ChoiceUsage, Offer, Plan};

use super::attempt_result::AttemptResult;
use super::running_request::RunningRequest;
use super::voting;

/// The label for the target if there was no place on any.
const NO_TARGET: &str = "none";

/// The attempts at a plan: which offer is at hand, and what was tried of it.
pub(super) struct Attempts<'p> {
    pub(super) offer: &'p Offer,
    left: std::slice::Iter<'p, Offer>,
    tried: u32,
    tried_targets: Vec<usize>,
    /// The target of the last attempt.
    target: Option<Arc<str>>,
}

/// An attempt that can be made: on these places, or the reason that there are none.
pub(super) type AttemptPermit = Result<Permit, AttemptResult>;

impl<'p> Attempts<'p> {
    /// The first attempt at a plan.
    pub(super) fn at(plan: &'p Plan) -> Attempts<'p> {
        let (offer, left) = (&plan.best, plan.fallbacks.iter());
        Attempts { offer, left, tried: 0, tried_targets: Vec::new(), target: None }
    }

    /// One attempt at one offer.
    pub(super) fn only(offer: &'p Offer) -> Attempts<'p> {
        Attempts { offer, left: [].iter(), tried: 0, tried_targets: Vec::new(), target: None }
    }

    fn turn_to(&mut self, offer: &'p Offer) {
        self.offer = offer;
        self.tried = 0;
        self.tried_targets.clear();
    }

    /// The target of the last attempt, for the log; there may have been no place on any.
    fn target(&self) -> Arc<str> {
        self.target.clone().unwrap_or_else(|| NO_TARGET.into())
    }

    /// The targets that the offer was tried on; nothing if it was tried so many times already.
    pub(super) fn tried_targets_below(&self, most: u32) -> Option<&[usize]> {
        (self.tried < most).then_some(&*self.tried_targets)
    }

    /// The attempt on this permit is the one that goes on.
    pub(super) fn set_target(&mut self, permit: &Permit) {
        self.target = Some(permit.target().clone());
    }

    pub(super) fn start(&mut self, permit: &Permit) {
        self.tried += 1;
        self.target = Some(permit.target().clone());
        if !self.tried_targets.contains(&permit.target_index()) {
            self.tried_targets.push(permit.target_index());
        }
    }
}

/// Takes places for the first attempt at an offer, and waits for them if need be.
pub(super) async fn acquire(running: RunningRequest<'_>, attempts: &mut Attempts<'_>) -> AttemptPermit {
    let fleet = running.context.fleet(attempts.offer).map_err(AttemptResult::Failed)?;
    let permit = tokio::select! {
        biased;
        () = running.updates.closed() => return Err(AttemptResult::HungUp),
        permit = fleet.acquire(permit_request(running.context, attempts.offer)) => permit.map_err(AttemptResult::Failed)?,
    };
    attempts.start(&permit);
    Ok(permit)
}

/// What is tried after a failure, with its money reserved; nothing if that was the end.
pub(super) async fn next_attempt(
    running: RunningRequest<'_>,
    attempts: &mut Attempts<'_>,
    result: &AttemptResult,
    progress: &[ChoiceProgress],
    reservation: &mut RequestReservation,
) -> Option<AttemptPermit> {
    let AttemptResult::Failed(failure) = result else { return None };
    if !may_go_on(running.context, failure, progress) {
        return None;
    }
    let spent: Vec<ChoiceUsage> = progress.iter().map(ChoiceProgress::spent).collect();
    let incapable = is_incapable(failure);
    if !incapable
        && let Some(permit) = try_other_target(running.context, attempts, failure, &spent, reservation).await
    {
        return Some(Ok(permit));
    }
    // What does not fit any more is not tried.
    while let Some(next) = attempts.left.next() {
        if reservation.extend_for_retry(next, running.context.bill(attempts.offer, &spent)).await {
            log_fallback(running.context, attempts, failure, next);
            attempts.turn_to(next);
            return Some(acquire(running, attempts).await);
        }
    }
    if incapable {
        return None;
    }
    retry_after_wait(running, attempts, failure, &spent, reservation).await.map(Ok)
}

/// Another target or model may be tried while the caller has read nothing, there is time, and the fault is not the
/// caller's as far as that can be known.
fn may_go_on(context: &RequestContext, failure: &Failure, progress: &[ChoiceProgress]) -> bool {
    // One who does not stream reads nothing before all of it is there.
    let unread = !context.request.streams || !has_written(progress);
    let helps = failure.allows_another_attempt();
    unread && (helps || is_incapable(failure)) && Instant::now() < context.deadline
}

/// True if something of an answer was sent.
pub(super) fn has_written(progress: &[ChoiceProgress]) -> bool {
    progress.iter().any(|choice| choice.first.is_some())
}

async fn try_other_target(
    context: &RequestContext,
    attempts: &mut Attempts<'_>,
    failure: &Failure,
    spent: &[ChoiceUsage],
    reservation: &mut RequestReservation,
) -> Option<Permit> {
    let fleet = context.fleet(attempts.offer).ok()?;
    let retry = fleet.settings().retry;
    // Where there was no permit at all there is none elsewhere either.
    let may = (1..retry.attempts_max).contains(&attempts.tried);
    if !may || !(failure.unsent || retry.sent_too) {
        return None;
    }
    let permit = fleet.acquire_retry(&permit_request(context, attempts.offer), &attempts.tried_targets)?;
    reserve_attempt(context, attempts, permit, failure, spent, reservation).await
}

/// After a while on whatever target of the same model is best by then.
async fn retry_after_wait(
    running: RunningRequest<'_>,
    attempts: &mut Attempts<'_>,
    failure: &Failure,
    spent: &[ChoiceUsage],
    reservation: &mut RequestReservation,
) -> Option<Permit> {
    let fleet = running.context.fleet(attempts.offer).ok()?;
    if failure.retry < Retry::Again || !(failure.unsent || fleet.settings().retry.sent_too) {
        return None;
    }
    let wait = fleet.retry_wait(attempts.tried, &permit_request(running.context, attempts.offer))?;
    if !wait_unless_hung_up(running, wait).await {
        return None;
    }
    let permit = fleet.acquire_retry(&permit_request(running.context, attempts.offer), &[])?;
    reserve_attempt(running.context, attempts, permit, failure, spent, reservation).await
}

/// The permit of an attempt whose worst case could be reserved in addition to what was lost.
async fn reserve_attempt(
    context: &RequestContext,
    attempts: &mut Attempts<'_>,
    permit: Permit,
    failure: &Failure,
    spent: &[ChoiceUsage],
    reservation: &mut RequestReservation,
) -> Option<Permit> {
    if !reservation.extend_for_retry(attempts.offer, context.bill(attempts.offer, spent)).await {
        return None;
    }
    let failed = attempts.target();
    attempts.start(&permit);
    let (model, next) = (&*attempts.offer.model, &**permit.target());
    tracing::info!(
        request = %context.id, model, target = &*failed, fault = failure.fault.as_str(), %failure, next, "tried again"
    );
    context.parts().metrics.backends.retries.with_label_values(&[model, next]).inc();
    Some(permit)
}

/// False if the caller left meanwhile.
async fn wait_unless_hung_up(running: RunningRequest<'_>, wait: Duration) -> bool {
    tokio::select! {
        biased;
        () = running.updates.closed() => false,
        () = tokio::time::sleep(wait) => true,
    }
}

/// What is asked of the fleet for an attempt at an offer.
pub(super) fn permit_request(context: &RequestContext, offer: &Offer) -> PermitRequest {
    PermitRequest {
        affinity: context.affinity,
        flow: context.flow,
        calls: voting::calls(&context.policy, offer, context.request.choices),
        priority: context.priority,
        deadline: context.deadline,
    }
}

/// The next offer is tried instead.
fn log_fallback(context: &RequestContext, attempts: &Attempts<'_>, failure: &Failure, next: &Offer) {
    let (model, target) = (&*attempts.offer.model, &*attempts.target());
    tracing::warn!(
        request = %context.id, model, target, fault = failure.fault.as_str(), %failure, next = %next.model, "fell back"
    );
    context.parts().metrics.requests.fallbacks.with_label_values(&[model]).inc();
}

/// Counts an attempt that failed.
pub(super) fn count_failure(context: &RequestContext, offer: &Offer, permit: &Permit, failure: &Failure) {
    let labels = &[&*offer.model, &**permit.target(), failure.fault.as_str()];
    context.parts().metrics.backends.attempt_failures.with_label_values(labels).inc();
}

/// Where only the words of one API lack, another model may have them.
fn is_incapable(failure: &Failure) -> bool {
    failure.unsent && failure.unsupported.is_some()
}
