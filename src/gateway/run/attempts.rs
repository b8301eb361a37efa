//! Where a request goes, and where it goes next when that failed: to another target of the same model, to the next
//! offer, or once more to the same target after a while.
//!
//! This is the only place that tries again. What an attempt may have cost is paid from the reservation, which is
//! extended first.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::fleet::{Fleet, Permit, PermitRequest};
use crate::backend::{Failure, Fault, Retry};
use crate::catalog::{ChoiceUsage, Offer};
use crate::execute::ChoiceProgress;

use super::running_request::RunningRequest;
use super::trial::is_refused;
use super::voting;
use crate::gateway::RequestUpdate;
use crate::gateway::finish::AttemptResult;
use crate::gateway::request::reservation::RequestReservation;

/// What stands for the target where there was no place on any.
const NO_TARGET: &str = "none";

/// The attempts at a plan: which offer is at hand, and what was tried of it.
pub(in crate::gateway) struct Attempts<'p> {
    pub(in crate::gateway) offer: &'p Offer,
    left: std::slice::Iter<'p, Offer>,
    tried: u32,
    tried_targets: Vec<usize>,
    /// The target of the last attempt.
    target: Option<Arc<str>>,
}

/// An attempt that can be made: on these places, or the reason that there are none.
pub(in crate::gateway) type AttemptPermit = Result<Permit, AttemptResult>;

impl<'p> Attempts<'p> {
    pub(in crate::gateway) fn at(flying: &'p RunningRequest) -> Attempts<'p> {
        let (offer, left) = (&flying.plan.best, flying.plan.fallbacks.iter());
        Attempts { offer, left, tried: 0, tried_targets: Vec::new(), target: None }
    }

    /// One attempt at one offer.
    pub(in crate::gateway) fn only(offer: &'p Offer) -> Attempts<'p> {
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

    /// Where the offer was tried; nothing where it was tried so many times already.
    pub(in crate::gateway) fn tried_targets_below(&self, most: u32) -> Option<&[usize]> {
        (self.tried < most).then_some(&*self.tried_targets)
    }

    /// The attempt on this seat is the one that goes on.
    pub(in crate::gateway) fn set_target(&mut self, seat: &Permit) {
        self.target = Some(seat.target().clone());
    }

    pub(in crate::gateway) fn start(&mut self, seat: &Permit) {
        self.tried += 1;
        self.target = Some(seat.target().clone());
        if !self.tried_targets.contains(&seat.target_index()) {
            self.tried_targets.push(seat.target_index());
        }
    }
}

impl RunningRequest {
    /// Takes places for the first attempt at an offer, and waits for them if need be.
    pub(in crate::gateway) async fn acquire(
        &self,
        attempts: &mut Attempts<'_>,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptPermit {
        let fleet = self.fleet(attempts.offer).map_err(AttemptResult::Failed)?;
        let seat = tokio::select! {
            biased;
            () = reports.closed() => return Err(AttemptResult::HungUp),
            seat = fleet.acquire(self.want(attempts.offer)) => seat.map_err(AttemptResult::Failed)?,
        };
        attempts.start(&seat);
        Ok(seat)
    }

    /// What is tried after a failure, with its money set aside; nothing where that was the end.
    pub(in crate::gateway) async fn next_attempt(
        &self,
        attempts: &mut Attempts<'_>,
        (landing, progress): (&AttemptResult, &[ChoiceProgress]),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> Option<AttemptPermit> {
        let AttemptResult::Failed(failure) = landing else { return None };
        if !self.may_go_on(failure, progress) {
            return None;
        }
        let spent: Vec<ChoiceUsage> = progress.iter().map(ChoiceProgress::spent).collect();
        let incapable = is_incapable(failure);
        let elsewhere = async {
            if incapable { None } else { self.try_other_target(attempts, failure, &spent, books).await }
        };
        if let Some(seat) = elsewhere.await {
            return Some(Ok(seat));
        }
        // What does not fit any more is not tried.
        while let Some(next) = attempts.left.next() {
            if books.extend_for_retry(next, self.bill(attempts.offer, &spent)).await {
                self.log_fallback(attempts, failure, next);
                attempts.turn_to(next);
                return Some(self.acquire(attempts, reports).await);
            }
        }
        if incapable {
            return None;
        }
        self.retry_after_wait(attempts, failure, &spent, books, reports).await.map(Ok)
    }

    /// Another target or model may be tried while the caller has seen nothing, there is time, and the fault is not the
    /// caller's as far as that can be told.
    fn may_go_on(&self, failure: &Failure, progress: &[ChoiceProgress]) -> bool {
        let unseen = progress.iter().all(|choice| choice.first.is_none());
        // What one upstream refuses another may take.
        let helps = failure.retry > Retry::Never && (failure.fault != Fault::Caller || is_refused(failure));
        unseen && (helps || is_incapable(failure)) && Instant::now() < self.deadline
    }

    async fn try_other_target(
        &self,
        attempts: &mut Attempts<'_>,
        failure: &Failure,
        spent: &[ChoiceUsage],
        books: &mut RequestReservation,
    ) -> Option<Permit> {
        let fleet = self.fleet(attempts.offer).ok()?;
        let retry = fleet.settings().retry;
        // Where there was no seat at all there is none elsewhere either.
        let may = (1..retry.attempts_max).contains(&attempts.tried);
        if !may || !(failure.unsent || retry.sent_too) {
            return None;
        }
        let seat = fleet.acquire_retry(&self.want(attempts.offer), &attempts.tried_targets)?;
        self.reserve_attempt(attempts, seat, failure, spent, books).await
    }

    /// After a while on whatever target of the same model is best by then.
    async fn retry_after_wait(
        &self,
        attempts: &mut Attempts<'_>,
        failure: &Failure,
        spent: &[ChoiceUsage],
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> Option<Permit> {
        let fleet = self.fleet(attempts.offer).ok()?;
        if failure.retry < Retry::Again || !(failure.unsent || fleet.settings().retry.sent_too) {
            return None;
        }
        let wait = fleet.retry_wait(attempts.tried, &self.want(attempts.offer))?;
        if !self.wait_unless_hung_up(wait, reports).await {
            return None;
        }
        let seat = fleet.acquire_retry(&self.want(attempts.offer), &[])?;
        self.reserve_attempt(attempts, seat, failure, spent, books).await
    }

    /// The seat of an attempt whose worst case could be set aside beside what was lost.
    async fn reserve_attempt(
        &self,
        attempts: &mut Attempts<'_>,
        seat: Permit,
        failure: &Failure,
        spent: &[ChoiceUsage],
        books: &mut RequestReservation,
    ) -> Option<Permit> {
        if !books.extend_for_retry(attempts.offer, self.bill(attempts.offer, spent)).await {
            return None;
        }
        let failed = attempts.target();
        attempts.start(&seat);
        let (model, next) = (&*attempts.offer.model, &**seat.target());
        tracing::info!(
            request = %self.id, model, target = &*failed, fault = failure.fault.as_str(), %failure, next, "tried again"
        );
        self.parts.metrics.backends.retries.with_label_values(&[model, next]).inc();
        Some(seat)
    }

    /// False where the caller left meanwhile.
    async fn wait_unless_hung_up(&self, wait: Duration, reports: &mpsc::Sender<RequestUpdate>) -> bool {
        tokio::select! {
            biased;
            () = reports.closed() => false,
            () = tokio::time::sleep(wait) => true,
        }
    }

    pub(in crate::gateway) fn fleet(&self, offer: &Offer) -> Result<&Arc<Fleet>, Failure> {
        let fleet = self.parts.fleets.get(&offer.model);
        fleet.ok_or_else(|| Failure::new(Fault::Backend, "no backend serves it").unsent().retry_elsewhere())
    }

    pub(in crate::gateway) fn want(&self, offer: &Offer) -> PermitRequest {
        PermitRequest {
            affinity: self.beginning,
            flow: self.party,
            calls: voting::calls(&self.policy, offer, self.request.choices),
            priority: self.priority,
            deadline: self.deadline,
        }
    }

    /// The next offer is tried instead.
    fn log_fallback(&self, attempts: &Attempts<'_>, failure: &Failure, next: &Offer) {
        let (model, target) = (&*attempts.offer.model, &*attempts.target());
        tracing::warn!(
            request = %self.id, model, target, fault = failure.fault.as_str(), %failure, next = %next.model, "fell back"
        );
        self.parts.metrics.requests.fallbacks.with_label_values(&[model]).inc();
    }

    /// Counts an attempt that failed.
    pub(in crate::gateway) fn count_failure(&self, offer: &Offer, seat: &Permit, failure: &Failure) {
        let labels = &[&*offer.model, &**seat.target(), failure.fault.as_str()];
        self.parts.metrics.backends.attempt_failures.with_label_values(labels).inc();
    }
}

/// Where only the words of one API lack, another model may have them.
fn is_incapable(failure: &Failure) -> bool {
    failure.unsent && failure.unsupported.is_some()
}
