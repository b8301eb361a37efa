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
    runner: &'a mut BufferedAttempt<'r>,
    growth: &'a mut Option<ReservationGrowth>,
    permit: &'a Permit,
}

impl RacingAttempt<'_, '_> {
    /// Its next event; nothing when it has written, unseen, so much that it wants to grow.
    async fn next(&mut self) -> Option<AttemptEvent> {
        tokio::select! {
            biased;
            news = self.runner.next_event() => Some(news),
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
    match after.filter(|_| !votes(offer)) {
        Some(after) => run_hedged(running, permit, after, attempts, attempt, reservation).await,
        None => (run_offer(running, &permit, offer, attempt, reservation).await, permit),
    }
}

/// Makes one attempt, and a second in parallel if the first is silent for so long.
async fn run_hedged(
    running: RunningRequest<'_>,
    permit: Permit,
    after: Duration,
    attempts: &mut Attempts<'_>,
    attempt: &mut OfferAttempt,
    reservation: &mut RequestReservation,
) -> (AttemptResult, Permit) {
    let offer = attempts.offer;
    let growth = &mut attempt.growth;
    let mut first = BufferedAttempt::new(running.context, &permit, offer, &mut attempt.progress);
    let due = match timeout(after, next_event(running, &mut first, offer, growth, reservation)).await {
        Ok(news) => HedgeStart::FirstResponded(Some(news)),
        Err(_) if first.has_written() => HedgeStart::FirstResponded(None),
        Err(_) => start_hedge(running, &mut first, attempts, reservation).await,
    };
    let other = match due {
        HedgeStart::Acquired(other) => other,
        HedgeStart::Refused => {
            return (forward(running, first, None, offer, growth, reservation).await, permit);
        }
        HedgeStart::FirstResponded(news) => {
            return (forward(running, first, news, offer, growth, reservation).await, permit);
        }
    };
    attempts.start(&other);
    let mut made = OfferAttempt::new(running.context, offer);
    let mut second = BufferedAttempt::new(running.context, &other, offer, &mut made.progress);
    let one = RacingAttempt { runner: &mut first, growth: &mut *growth, permit: &permit };
    let beside = RacingAttempt { runner: &mut second, growth: &mut made.growth, permit: &other };
    match race(running, one, beside, offer, reservation).await {
        HedgeWinner::First(news) => {
            drop((second, other));
            record_cancelled(running.context, offer, &made.progress, reservation);
            attempts.set_target(&permit);
            notify_dispatch(running.context, &permit, attempts.offer);
            count_hedge(running.context, offer, LOST);
            (forward(running, first, news, offer, growth, reservation).await, permit)
        }
        HedgeWinner::Second(news) => {
            drop((first, permit));
            record_cancelled(running.context, offer, &attempt.progress, reservation);
            let result = forward(running, second, news, offer, &mut made.growth, reservation).await;
            let lost = matches!(result, AttemptResult::Failed(_));
            count_hedge(running.context, offer, if lost { LOST } else { WON });
            attempt.progress = made.progress;
            (result, other)
        }
    }
}

/// What comes of an attempt next; its caller's leaving is its end.
async fn next_event(
    running: RunningRequest<'_>,
    runner: &mut BufferedAttempt<'_>,
    offer: &Offer,
    growth: &mut Option<ReservationGrowth>,
    reservation: &mut RequestReservation,
) -> AttemptEvent {
    let meters = runner.meters.clone();
    tokio::select! {
        biased;
        () = running.updates.closed() => AttemptEvent::Ended(AttemptResult::HungUp),
        news = runner.next_event() => news,
        never = meter_and_grow(running.context, offer, &meters, growth.as_mut(), reservation) => match never {},
    }
}

/// A permit for a second attempt. Its worst case is reserved in addition to the first's, which keeps running.
async fn start_hedge(
    running: RunningRequest<'_>,
    first: &mut BufferedAttempt<'_>,
    attempts: &Attempts<'_>,
    reservation: &mut RequestReservation,
) -> HedgeStart {
    let offer = attempts.offer;
    let Some(permit) = hedge_permit(running.context, attempts) else {
        count_hedge(running.context, offer, REFUSED);
        return HedgeStart::Refused;
    };
    let covered = tokio::select! {
        biased;
        () = running.updates.closed() => return HedgeStart::FirstResponded(Some(AttemptEvent::Ended(AttemptResult::HungUp))),
        news = first.next_event() => return HedgeStart::FirstResponded(Some(news)),
        covered = reservation.extend_for_hedge(offer) => covered,
    };
    if !covered {
        count_hedge(running.context, offer, REFUSED);
        return HedgeStart::Refused;
    }
    let (model, target) = (&*offer.model, &**permit.target());
    tracing::info!(request = %running.context.id, model, target, "asked beside one that is silent");
    HedgeStart::Acquired(permit)
}

fn hedge_permit(context: &RequestContext, attempts: &Attempts<'_>) -> Option<Permit> {
    let fleet = context.fleet(attempts.offer).ok()?;
    let been = attempts.tried_targets_below(fleet.settings().retry.attempts_max)?;
    fleet.acquire_hedge(&permit_request(context, attempts.offer), been)
}

/// Waits until one of two attempts writes something, seen or not, or ends. One that fails leaves the answer to the other.
async fn race(
    running: RunningRequest<'_>,
    mut first: RacingAttempt<'_, '_>,
    mut second: RacingAttempt<'_, '_>,
    offer: &Offer,
    reservation: &mut RequestReservation,
) -> HedgeWinner {
    let meters = [&*first.runner.meters, &*second.runner.meters].concat();
    let permits = [first.permit, second.permit];
    let (is_second, news) = tokio::select! {
        biased;
        () = running.updates.closed() => (false, Some(AttemptEvent::Ended(AttemptResult::HungUp))),
        news = first.next() => (false, news),
        news = second.next() => (true, news),
        never = meter_and_grow(running.context, offer, &meters, None, reservation) => match never {},
    };
    match news {
        Some(AttemptEvent::Ended(AttemptResult::Failed(failure))) => {
            count_failure(running.context, offer, permits[usize::from(is_second)], &failure);
            if is_second { HedgeWinner::First(None) } else { HedgeWinner::Second(None) }
        }
        news if is_second => HedgeWinner::Second(news),
        news => HedgeWinner::First(news),
    }
}

/// Forwards everything that an attempt writes, until it ends or its caller is gone.
async fn forward(
    running: RunningRequest<'_>,
    mut runner: BufferedAttempt<'_>,
    mut news: Option<AttemptEvent>,
    offer: &Offer,
    growth: &mut Option<ReservationGrowth>,
    reservation: &mut RequestReservation,
) -> AttemptResult {
    let meters = runner.meters.clone();
    let shown = async {
        loop {
            let next = match news.take() {
                Some(news) => news,
                None => runner.next_event().await,
            };
            match next {
                AttemptEvent::Ended(result) => return result,
                // A caller who takes nothing until the deadline has left.
                AttemptEvent::Update(report) => {
                    match timeout_at(running.context.deadline, running.updates.send(report)).await {
                        Ok(Ok(())) => {}
                        _ => return AttemptResult::HungUp,
                    }
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = running.updates.closed() => AttemptResult::HungUp,
        result = shown => result,
        never = meter_and_grow(running.context, offer, &meters, growth.as_mut(), reservation) => match never {},
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
