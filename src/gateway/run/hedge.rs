//! Hedges: starts a second attempt beside one that is silent for long, on another target of the same model. The one that
//! writes first is the answer, even if what it writes is held back. The other one is dropped at once, and what it took is paid.
//!
//! The worst cases of both are reserved before the second is sent, and it counts as a retry of its target. Without money,
//! a permit or retries left there is no hedge, and the first attempt continues alone.

use std::time::Duration;

use tokio::time::{timeout, timeout_at};

use crate::execute::ChoiceProgress;
use crate::gateway::request::{RequestContext, RequestReservation};
use stint_backend::fleet::Permit;
use stint_types::catalog::Offer;
use stint_types::metrics::Metrics;

use super::attempt::run_offer;
use super::attempt_result::AttemptResult;
use super::attempts::{Attempts, count_failure, permit_request};
use super::buffered_attempt::{AttemptEvent, BufferedAttempt};
use super::choices::notify_dispatch;
use super::growth::{ReservationGrowth, meter_and_grow};
use super::offer_attempt::OfferAttempt;
use super::outcome::spent_by_choice;
use super::running_request::RunningRequest;
use super::voting::votes;

/// The second attempt is the answer.
const WON: &str = "won";
/// It was made, and is not.
const LOST: &str = "lost";
/// It was due, and was not made.
const REFUSED: &str = "refused";

/// Begins the count of what becomes of a model's second attempts.
pub(crate) fn zero_metrics(metrics: &Metrics, model: &str) {
    for outcome in [WON, LOST, REFUSED] {
        metrics.backends.hedges.with_label_values(&[model, outcome]);
    }
}

/// What became of a second attempt that was due.
enum HedgeStart {
    /// It can be made there.
    Acquired(Permit),
    /// It cannot.
    Refused,
    /// The first is not silent any more. What it wrote may be held back.
    FirstResponded(Option<AttemptEvent>),
}

/// One of two attempts at once.
struct RacingAttempt<'a, 'r> {
    attempt: &'a mut BufferedAttempt<'r>,
    growth: &'a mut Option<ReservationGrowth>,
    permit: &'a Permit,
}

impl RacingAttempt<'_, '_> {
    /// Its next event; nothing when it has written, unseen, so much that it wants to grow.
    async fn next(&mut self) -> Option<AttemptEvent> {
        tokio::select! {
            biased;
            event = self.attempt.next_event() => Some(event),
            () = ReservationGrowth::wait_until_due(self.growth.as_mut()) => None,
        }
    }
}

/// Which of two attempts goes on, and what comes of it next, where that is known.
enum HedgeWinner {
    First(Option<AttemptEvent>),
    Second(Option<AttemptEvent>),
}

/// Makes one attempt on that permit, or two of which one continues. Returns how it ended and where; what it took is in
/// `progress`, and what the other took is booked.
pub(super) async fn attempt(
    running: RunningRequest<'_>,
    permit: Permit,
    attempts: &mut Attempts<'_>,
    attempt: &mut OfferAttempt,
    reservation: &mut RequestReservation,
) -> (AttemptResult, Permit) {
    let offer = attempts.offer;
    let after = running.context.fleet(offer).ok().and_then(|fleet| fleet.hedge_after());
    let Some(after) = after.filter(|_| !votes(offer)) else {
        return (run_offer(running, &permit, offer, attempt, reservation).await, permit);
    };
    let OfferAttempt { progress, growth } = attempt;
    HedgedAttempt { running, attempts, growth, reservation }.run(permit, after, progress).await
}

/// An attempt that may get a second one beside it, with what grows and pays while it runs.
struct HedgedAttempt<'a, 'p> {
    running: RunningRequest<'a>,
    attempts: &'a mut Attempts<'p>,
    growth: &'a mut Option<ReservationGrowth>,
    reservation: &'a mut RequestReservation,
}

impl HedgedAttempt<'_, '_> {
    /// Makes one attempt, and a second in parallel if the first is silent for so long.
    async fn run(
        mut self,
        permit: Permit,
        after: Duration,
        progress: &mut Vec<ChoiceProgress>,
    ) -> (AttemptResult, Permit) {
        let (context, offer) = (self.running.context, self.attempts.offer);
        let mut first = BufferedAttempt::new(context, &permit, offer, progress);
        let due = match timeout(after, self.next_event(&mut first)).await {
            Ok(event) => HedgeStart::FirstResponded(Some(event)),
            Err(_) if first.has_written() => HedgeStart::FirstResponded(None),
            Err(_) => self.start_hedge(&mut first).await,
        };
        let other = match due {
            HedgeStart::Acquired(other) => other,
            HedgeStart::Refused => return (self.forward(first, None).await, permit),
            HedgeStart::FirstResponded(event) => return (self.forward(first, event).await, permit),
        };
        self.attempts.start(&other);
        let mut made = OfferAttempt::new(context, offer);
        let mut second = BufferedAttempt::new(context, &other, offer, &mut made.progress);
        let both = (
            RacingAttempt { attempt: &mut first, growth: &mut *self.growth, permit: &permit },
            RacingAttempt { attempt: &mut second, growth: &mut made.growth, permit: &other },
        );
        match race(self.running, both, offer, self.reservation).await {
            HedgeWinner::First(event) => {
                drop((second, other));
                record_cancelled(context, offer, &made.progress, self.reservation);
                self.attempts.set_target(&permit);
                notify_dispatch(context, &permit, offer);
                count_hedge(context, offer, LOST);
                (self.forward(first, event).await, permit)
            }
            HedgeWinner::Second(event) => {
                drop((first, permit));
                record_cancelled(context, offer, progress, self.reservation);
                let beside = HedgedAttempt { growth: &mut made.growth, ..self };
                let result = beside.forward(second, event).await;
                let lost = matches!(result, AttemptResult::Failed(_));
                count_hedge(context, offer, if lost { LOST } else { WON });
                *progress = made.progress;
                (result, other)
            }
        }
    }

    /// What comes of an attempt next; its caller's leaving is its end.
    async fn next_event(&mut self, attempt: &mut BufferedAttempt<'_>) -> AttemptEvent {
        let RunningRequest { context, updates } = self.running;
        let (offer, meters) = (self.attempts.offer, attempt.meters.clone());
        tokio::select! {
            biased;
            () = updates.closed() => AttemptEvent::Ended(AttemptResult::HungUp),
            event = attempt.next_event() => event,
            never = meter_and_grow(context, offer, &meters, self.growth.as_mut(), self.reservation) => match never {},
        }
    }

    /// A permit for a second attempt. Its worst case is reserved in addition to the first's, which keeps running.
    async fn start_hedge(&mut self, first: &mut BufferedAttempt<'_>) -> HedgeStart {
        let RunningRequest { context, updates } = self.running;
        let offer = self.attempts.offer;
        let Some(permit) = hedge_permit(context, self.attempts) else {
            count_hedge(context, offer, REFUSED);
            return HedgeStart::Refused;
        };
        let covered = tokio::select! {
            biased;
            () = updates.closed() => return HedgeStart::FirstResponded(Some(AttemptEvent::Ended(AttemptResult::HungUp))),
            event = first.next_event() => return HedgeStart::FirstResponded(Some(event)),
            covered = self.reservation.extend_for_hedge(offer) => covered,
        };
        if !covered {
            count_hedge(context, offer, REFUSED);
            return HedgeStart::Refused;
        }
        let (model, target) = (&*offer.model, &**permit.target());
        tracing::info!(request = %context.id, model, target, "asked beside one that is silent");
        HedgeStart::Acquired(permit)
    }

    /// Forwards everything that an attempt writes, until it ends or its caller is gone.
    async fn forward(
        self,
        mut attempt: BufferedAttempt<'_>,
        mut event: Option<AttemptEvent>,
    ) -> AttemptResult {
        let RunningRequest { context, updates } = self.running;
        let (offer, meters) = (self.attempts.offer, attempt.meters.clone());
        let shown = async {
            loop {
                let next = match event.take() {
                    Some(event) => event,
                    None => attempt.next_event().await,
                };
                match next {
                    AttemptEvent::Ended(result) => return result,
                    // A caller who takes nothing until the deadline has left.
                    AttemptEvent::Update(report) => {
                        match timeout_at(context.deadline, updates.send(report)).await {
                            Ok(Ok(())) => {}
                            _ => return AttemptResult::HungUp,
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = updates.closed() => AttemptResult::HungUp,
            result = shown => result,
            never = meter_and_grow(context, offer, &meters, self.growth.as_mut(), self.reservation) => match never {},
        }
    }
}

fn hedge_permit(context: &RequestContext, attempts: &Attempts<'_>) -> Option<Permit> {
    let fleet = context.fleet(attempts.offer).ok()?;
    let been = attempts.tried_targets_below(fleet.settings().retry.attempts_max)?;
    fleet.acquire_hedge(&permit_request(context, attempts.offer), been)
}

/// Waits until one of two attempts writes something, seen or not, or ends. One that fails leaves the answer to the other.
async fn race(
    running: RunningRequest<'_>,
    (mut first, mut second): (RacingAttempt<'_, '_>, RacingAttempt<'_, '_>),
    offer: &Offer,
    reservation: &mut RequestReservation,
) -> HedgeWinner {
    let meters = [&*first.attempt.meters, &*second.attempt.meters].concat();
    let permits = [first.permit, second.permit];
    let (is_second, event) = tokio::select! {
        biased;
        () = running.updates.closed() => (false, Some(AttemptEvent::Ended(AttemptResult::HungUp))),
        event = first.next() => (false, event),
        event = second.next() => (true, event),
        never = meter_and_grow(running.context, offer, &meters, None, reservation) => match never {},
    };
    match event {
        Some(AttemptEvent::Ended(AttemptResult::Failed(failure))) => {
            count_failure(running.context, offer, permits[usize::from(is_second)], &failure);
            if is_second { HedgeWinner::First(None) } else { HedgeWinner::Second(None) }
        }
        event if is_second => HedgeWinner::Second(event),
        event => HedgeWinner::First(event),
    }
}

/// Books an attempt that does not go on.
fn record_cancelled(
    context: &RequestContext,
    offer: &Offer,
    progress: &[ChoiceProgress],
    reservation: &mut RequestReservation,
) {
    let spent = spent_by_choice(progress);
    reservation.record_cancelled(context.bill(offer, &spent));
}

fn count_hedge(context: &RequestContext, offer: &Offer, outcome: &str) {
    context.parts().metrics.backends.hedges.with_label_values(&[&*offer.model, outcome]).inc();
}
