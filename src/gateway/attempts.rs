//! Where a request goes, and where it goes next when that failed: to another target of the same model, to the next
//! offer, or once more to the same target after a while.
//!
//! This is the only place that tries again. What an attempt may have cost is paid from the reservation, which is
//! extended first.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::fleet::{Fleet, Seat, Want};
use crate::backend::{Failure, Fault, Retry};
use crate::catalog::{Offer, Spent};
use crate::execute::Progress;

use super::Report;
use super::books::Books;
use super::flying::Flying;
use super::landing::Landing;
use super::trial::is_refused;
use super::voting;

/// What stands for the target where there was no place on any.
const NO_TARGET: &str = "none";

/// The attempts at a plan: which offer is at hand, and what was tried of it.
pub(super) struct Attempts<'p> {
    pub(super) offer: &'p Offer,
    left: std::slice::Iter<'p, Offer>,
    tried: u32,
    been: Vec<usize>,
    /// The target of the last attempt.
    target: Option<Arc<str>>,
}

/// An attempt that can be made: on these places, or the reason that there are none.
pub(super) type Boarded = Result<Seat, Landing>;

impl<'p> Attempts<'p> {
    pub(super) fn at(flying: &'p Flying) -> Attempts<'p> {
        let (offer, left) = (&flying.plan.best, flying.plan.fallbacks.iter());
        Attempts { offer, left, tried: 0, been: Vec::new(), target: None }
    }

    /// One attempt at one offer.
    pub(super) fn only(offer: &'p Offer) -> Attempts<'p> {
        Attempts { offer, left: [].iter(), tried: 0, been: Vec::new(), target: None }
    }

    fn turn_to(&mut self, offer: &'p Offer) {
        self.offer = offer;
        self.tried = 0;
        self.been.clear();
    }

    /// The target of the last attempt, for the log; there may have been no place on any.
    fn target(&self) -> Arc<str> {
        self.target.clone().unwrap_or_else(|| NO_TARGET.into())
    }

    /// Where the offer was tried; nothing where it was tried so many times already.
    pub(super) fn been_below(&self, most: u32) -> Option<&[usize]> {
        (self.tried < most).then_some(&*self.been)
    }

    /// The attempt on this seat is the one that goes on.
    pub(super) fn stays_on(&mut self, seat: &Seat) {
        self.target = Some(seat.target().clone());
    }

    pub(super) fn sets_out(&mut self, seat: &Seat) {
        self.tried += 1;
        self.target = Some(seat.target().clone());
        if !self.been.contains(&seat.place()) {
            self.been.push(seat.place());
        }
    }
}

impl Flying {
    /// Takes places for the first attempt at an offer, and waits for them if need be.
    pub(super) async fn board(&self, attempts: &mut Attempts<'_>, reports: &mpsc::Sender<Report>) -> Boarded {
        let fleet = self.fleet(attempts.offer).map_err(Landing::Failed)?;
        let seat = tokio::select! {
            biased;
            () = reports.closed() => return Err(Landing::HungUp),
            seat = fleet.board(self.want(attempts.offer)) => seat.map_err(Landing::Failed)?,
        };
        attempts.sets_out(&seat);
        Ok(seat)
    }

    /// What is tried after a failure, with its money set aside; nothing where that was the end.
    pub(super) async fn next(
        &self,
        attempts: &mut Attempts<'_>,
        (landing, progress): (&Landing, &[Progress]),
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Option<Boarded> {
        let Landing::Failed(failure) = landing else { return None };
        if !self.may_go_on(failure, progress) {
            return None;
        }
        let spent: Vec<Spent> = progress.iter().map(Progress::spent).collect();
        let incapable = is_incapable(failure);
        let elsewhere =
            async { if incapable { None } else { self.elsewhere(attempts, failure, &spent, books).await } };
        if let Some(seat) = elsewhere.await {
            return Some(Ok(seat));
        }
        // What does not fit any more is not tried.
        while let Some(next) = attempts.left.next() {
            if books.turn_to(next, self.bill(attempts.offer, &spent)).await {
                self.give_up(attempts, failure, next);
                attempts.turn_to(next);
                return Some(self.board(attempts, reports).await);
            }
        }
        if incapable {
            return None;
        }
        self.once_more(attempts, failure, &spent, books, reports).await.map(Ok)
    }

    /// Another target or model may be tried while the caller has seen nothing, there is time, and the fault is not the
    /// caller's as far as that can be told.
    fn may_go_on(&self, failure: &Failure, progress: &[Progress]) -> bool {
        let unseen = progress.iter().all(|choice| choice.first.is_none());
        // What one upstream refuses another may take.
        let helps = failure.retry > Retry::Never && (failure.fault != Fault::Caller || is_refused(failure));
        unseen && (helps || is_incapable(failure)) && Instant::now() < self.deadline
    }

    async fn elsewhere(
        &self,
        attempts: &mut Attempts<'_>,
        failure: &Failure,
        spent: &[Spent],
        books: &mut Books,
    ) -> Option<Seat> {
        let fleet = self.fleet(attempts.offer).ok()?;
        let retry = fleet.settings().retry;
        // Where there was no seat at all there is none elsewhere either.
        let may = (1..retry.attempts_max).contains(&attempts.tried);
        if !may || !(failure.unsent || retry.sent_too) {
            return None;
        }
        let seat = fleet.board_again(&self.want(attempts.offer), &attempts.been)?;
        self.paid(attempts, seat, failure, spent, books).await
    }

    /// After a while on whatever target of the same model is best by then.
    async fn once_more(
        &self,
        attempts: &mut Attempts<'_>,
        failure: &Failure,
        spent: &[Spent],
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Option<Seat> {
        let fleet = self.fleet(attempts.offer).ok()?;
        if failure.retry < Retry::Again || !(failure.unsent || fleet.settings().retry.sent_too) {
            return None;
        }
        let wait = fleet.wait_again(attempts.tried, &self.want(attempts.offer))?;
        if !self.waited(wait, reports).await {
            return None;
        }
        let seat = fleet.board_again(&self.want(attempts.offer), &[])?;
        self.paid(attempts, seat, failure, spent, books).await
    }

    /// The seat of an attempt whose worst case could be set aside beside what was lost.
    async fn paid(
        &self,
        attempts: &mut Attempts<'_>,
        seat: Seat,
        failure: &Failure,
        spent: &[Spent],
        books: &mut Books,
    ) -> Option<Seat> {
        if !books.turn_to(attempts.offer, self.bill(attempts.offer, spent)).await {
            return None;
        }
        let failed = attempts.target();
        attempts.sets_out(&seat);
        let (model, next) = (&*attempts.offer.model, &**seat.target());
        tracing::info!(
            request = %self.id, model, target = &*failed, fault = failure.fault.word(), %failure, next, "tried again"
        );
        self.parts.metrics.backends.retries.with_label_values(&[model, next]).inc();
        Some(seat)
    }

    /// False where the caller left meanwhile.
    async fn waited(&self, wait: Duration, reports: &mpsc::Sender<Report>) -> bool {
        tokio::select! {
            biased;
            () = reports.closed() => false,
            () = tokio::time::sleep(wait) => true,
        }
    }

    pub(super) fn fleet(&self, offer: &Offer) -> Result<&Arc<Fleet>, Failure> {
        let fleet = self.parts.fleets.get(&offer.model);
        fleet.ok_or_else(|| Failure::new(Fault::Backend, "no backend serves it").unsent().elsewhere())
    }

    pub(super) fn want(&self, offer: &Offer) -> Want {
        Want {
            beginning: self.beginning,
            party: self.party,
            calls: voting::calls(&self.policy, offer, self.request.choices),
            priority: self.priority,
            deadline: self.deadline,
        }
    }

    /// The next offer is tried instead.
    fn give_up(&self, attempts: &Attempts<'_>, failure: &Failure, next: &Offer) {
        let (model, target) = (&*attempts.offer.model, &*attempts.target());
        tracing::warn!(
            request = %self.id, model, target, fault = failure.fault.word(), %failure, next = %next.model, "fell back"
        );
        self.parts.metrics.requests.fallbacks.with_label_values(&[model]).inc();
    }

    /// Counts an attempt that failed.
    pub(super) fn count(&self, offer: &Offer, seat: &Seat, failure: &Failure) {
        let labels = &[&*offer.model, &**seat.target(), failure.fault.word()];
        self.parts.metrics.backends.attempt_failures.with_label_values(labels).inc();
    }
}

/// Where only the words of one API lack, another model may have them.
fn is_incapable(failure: &Failure) -> bool {
    failure.unsent && failure.lack.is_some()
}
