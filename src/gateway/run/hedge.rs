//! A second attempt beside one that says nothing for long, on another target of the same model. Whichever says something
//! first is the answer; the other one is let go at once, and what it took is paid.
//!
//! The worst cases of both are set aside before the second is sent, and it counts as a retry of its target. Where money,
//! places or retries lack, there is none, and the first goes on alone.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

use crate::backend::fleet::Permit;
use crate::catalog::Offer;
use crate::execute::ChoiceProgress;
use crate::metrics::Metrics;

use super::attempts::Attempts;
use super::buffered_attempt::{AttemptEvent, BufferedAttempt};
use super::growth::ReservationGrowth;
use super::running_request::{RunningRequest, spent_by_choice};
use crate::gateway::RequestUpdate;
use crate::gateway::finish::AttemptResult;
use crate::gateway::request::reservation::RequestReservation;

/// The second attempt is the answer.
const WON: &str = "won";
/// It was made, and is not.
const LOST: &str = "lost";
/// It was due, and was not made.
const REFUSED: &str = "refused";

/// Begins the count of what becomes of a model's second attempts.
pub(in crate::gateway) fn zero_metrics(metrics: &Metrics, model: &str) {
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
    /// The first is not silent any more.
    FirstResponded(AttemptEvent),
}

/// Which of two attempts goes on, and what comes of it next, where that is known.
enum HedgeWinner {
    First(Option<AttemptEvent>),
    Second(Option<AttemptEvent>),
}

impl RunningRequest {
    /// Makes one attempt on that seat, or two of which one goes on. Says how it ended and where; what it took is in
    /// `progress`, and what the other took is booked.
    pub(in crate::gateway) async fn attempt(
        &self,
        seat: Permit,
        attempts: &mut Attempts<'_>,
        (progress, growth): (&mut Vec<ChoiceProgress>, &mut Option<ReservationGrowth>),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> (AttemptResult, Permit) {
        let offer = attempts.offer;
        let after = self.fleet(offer).ok().and_then(|fleet| fleet.hedge_after());
        match after.filter(|_| !self.votes(offer)) {
            Some(after) => self.run_hedged(seat, after, attempts, (progress, growth), books, reports).await,
            None => (self.run(&seat, offer, (progress, growth), books, reports).await, seat),
        }
    }

    /// Makes one attempt, and a second beside it where that is silent for so long.
    async fn run_hedged(
        &self,
        seat: Permit,
        after: Duration,
        attempts: &mut Attempts<'_>,
        (progress, growth): (&mut Vec<ChoiceProgress>, &mut Option<ReservationGrowth>),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> (AttemptResult, Permit) {
        let offer = attempts.offer;
        let mut first = BufferedAttempt::new(self, &seat, offer, progress);
        let due = match timeout(after, self.next_event(&mut first, offer, (growth, books), reports)).await {
            Ok(news) => HedgeStart::FirstResponded(news),
            Err(_) => self.start_hedge(&mut first, attempts, books, reports).await,
        };
        let other = match due {
            HedgeStart::Acquired(other) => other,
            HedgeStart::Refused => {
                return (self.forward(first, None, offer, (growth, books), reports).await, seat);
            }
            HedgeStart::FirstResponded(news) => {
                return (self.forward(first, Some(news), offer, (growth, books), reports).await, seat);
            }
        };
        attempts.start(&other);
        let (mut made, mut second_growth) = self.prepare(offer);
        let mut second = BufferedAttempt::new(self, &other, offer, &mut made);
        let both = ((&mut first, &seat), (&mut second, &other));
        match self.race(both, offer, books, reports).await {
            HedgeWinner::First(news) => {
                drop((second, other));
                self.record_cancelled(offer, &made, books);
                attempts.set_target(&seat);
                self.notify_dispatch(&seat, attempts.offer);
                self.count_hedge(offer, LOST);
                (self.forward(first, news, offer, (growth, books), reports).await, seat)
            }
            HedgeWinner::Second(news) => {
                drop((first, seat));
                self.record_cancelled(offer, progress, books);
                let landing = self.forward(second, news, offer, (&mut second_growth, books), reports).await;
                let lost = matches!(landing, AttemptResult::Failed(_));
                self.count_hedge(offer, if lost { LOST } else { WON });
                *progress = made;
                (landing, other)
            }
        }
    }

    /// What comes of an attempt next; its caller's leaving is its end.
    async fn next_event(
        &self,
        runner: &mut BufferedAttempt<'_>,
        offer: &Offer,
        (growth, books): (&mut Option<ReservationGrowth>, &mut RequestReservation),
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptEvent {
        let meters = runner.meters.clone();
        tokio::select! {
            biased;
            () = reports.closed() => AttemptEvent::Ended(AttemptResult::HungUp),
            news = runner.next_event() => news,
            never = self.meter_and_grow(offer, &meters, growth.as_mut(), books) => match never {},
        }
    }

    /// A place for a second attempt, whose worst case is set aside beside the first's while that runs on.
    async fn start_hedge(
        &self,
        first: &mut BufferedAttempt<'_>,
        attempts: &Attempts<'_>,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> HedgeStart {
        let offer = attempts.offer;
        let Some(seat) = self.hedge_permit(attempts) else {
            self.count_hedge(offer, REFUSED);
            return HedgeStart::Refused;
        };
        let covered = tokio::select! {
            biased;
            () = reports.closed() => return HedgeStart::FirstResponded(AttemptEvent::Ended(AttemptResult::HungUp)),
            news = first.next_event() => return HedgeStart::FirstResponded(news),
            covered = books.extend_for_hedge(offer) => covered,
        };
        if !covered {
            self.count_hedge(offer, REFUSED);
            return HedgeStart::Refused;
        }
        let (model, target) = (&*offer.model, &**seat.target());
        tracing::info!(request = %self.id, model, target, "asked beside one that is silent");
        HedgeStart::Acquired(seat)
    }

    fn hedge_permit(&self, attempts: &Attempts<'_>) -> Option<Permit> {
        let fleet = self.fleet(attempts.offer).ok()?;
        let been = attempts.tried_targets_below(fleet.settings().retry.attempts_max)?;
        fleet.acquire_hedge(&self.want(attempts.offer), been)
    }

    /// Waits until one of two attempts says something or ends. One that fails leaves the answer to the other.
    async fn race(
        &self,
        ((first, seat), (second, other)): (
            (&mut BufferedAttempt<'_>, &Permit),
            (&mut BufferedAttempt<'_>, &Permit),
        ),
        offer: &Offer,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> HedgeWinner {
        let meters = [&*first.meters, &*second.meters].concat();
        let (is_second, news) = tokio::select! {
            biased;
            () = reports.closed() => (false, AttemptEvent::Ended(AttemptResult::HungUp)),
            news = first.next_event() => (false, news),
            news = second.next_event() => (true, news),
            never = self.meter_and_grow(offer, &meters, None, books) => match never {},
        };
        match news {
            AttemptEvent::Ended(AttemptResult::Failed(failure)) => {
                let failed = if is_second { other } else { seat };
                self.count_failure(offer, failed, &failure);
                if is_second { HedgeWinner::First(None) } else { HedgeWinner::Second(None) }
            }
            news if is_second => HedgeWinner::Second(Some(news)),
            news => HedgeWinner::First(Some(news)),
        }
    }

    /// Shows everything that an attempt says, until it ends or its caller is gone.
    async fn forward(
        &self,
        mut runner: BufferedAttempt<'_>,
        mut news: Option<AttemptEvent>,
        offer: &Offer,
        (growth, books): (&mut Option<ReservationGrowth>, &mut RequestReservation),
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptResult {
        let meters = runner.meters.clone();
        let shown = async {
            loop {
                let next = match news.take() {
                    Some(news) => news,
                    None => runner.next_event().await,
                };
                match next {
                    AttemptEvent::Ended(landing) => return landing,
                    // A caller who takes nothing until the deadline has left.
                    AttemptEvent::Update(report) => {
                        match timeout_at(self.deadline, reports.send(report)).await {
                            Ok(Ok(())) => {}
                            _ => return AttemptResult::HungUp,
                        }
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = reports.closed() => AttemptResult::HungUp,
            landing = shown => landing,
            never = self.meter_and_grow(offer, &meters, growth.as_mut(), books) => match never {},
        }
    }

    /// Books an attempt that does not go on.
    fn record_cancelled(&self, offer: &Offer, progress: &[ChoiceProgress], books: &mut RequestReservation) {
        let spent = spent_by_choice(progress);
        books.record_cancelled(self.bill(offer, &spent));
    }

    fn count_hedge(&self, offer: &Offer, outcome: &str) {
        self.parts.metrics.backends.hedges.with_label_values(&[&*offer.model, outcome]).inc();
    }
}
