//! Extends the reservation of an answer that grows beyond what was reserved at first, while it streams.
//!
//! Once half of the reserved output is used, as much again is reserved, durably, before any of it is passed on. There are
//! eight steps at most, each of them a row in the ledger; the last goes to the whole limit. Money that other open requests
//! hold may be released, so it is waited for. A ledger that does not answer does not count as missing money.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{ChoiceProgress, Meter, ReservedOutput};
use crate::gateway::request::{ExtensionError, RequestContext, RequestReservation};
use stint_types::catalog::{ChoiceUsage, Offer, SolutionStopReason, Tariff};
use stint_types::units::{Money, Tokens};

use super::continuation::{ContinuationFunding, LOOK_EVERY, STEPS_MAX, fund_continuation};

/// The first look at what was taken, and the part of the time that passed after which comes the next.
const CHECKPOINT_MIN: Duration = Duration::from_millis(250);
const CHECKPOINT_PART: u32 = 5;
/// A choice draws its account up each time that a tenth of the time so far has passed: what is read is half as old as that.
const READING_PART: u32 = 20;
const READING_AGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// How the answers to an offer get beyond what is set aside for them at first.
pub(super) enum ReservationGrowth {
    /// While it streams.
    Stream(StreamGrowth),
    /// In further calls.
    Continuation(ContinuationFunding),
}

/// What is covered of the answers to an offer, and what may still be.
pub(super) struct StreamGrowth {
    cover: ReservedOutput,
    /// How many answers there are.
    answers: u64,
    /// What is covered of each, where all are as long.
    each: Tokens,
    most: Tokens,
    steps: u32,
    /// What was set aside beyond the offer's own worst case.
    extra: Money,
    /// When to try again.
    again: Option<Instant>,
}

impl ReservationGrowth {
    /// Of so many answers to an offer; nothing if all that they may take is set aside at first.
    pub(super) fn of(offer: &Offer, choices: u32) -> Option<ReservationGrowth> {
        let stream = StreamGrowth::of(offer, choices).map(ReservationGrowth::Stream);
        stream.or_else(|| ContinuationFunding::for_offer(offer).map(ReservationGrowth::Continuation))
    }

    /// A choice that uses it.
    pub(super) fn join(&self, progress: ChoiceProgress, offer: &Offer) -> ChoiceProgress {
        match self {
            ReservationGrowth::Stream(stream) => {
                progress.with_reserved_output(&stream.cover, offer.thinking + offer.overhead)
            }
            ReservationGrowth::Continuation(funding) => funding.attach(progress),
        }
    }

    /// Waits until there is something to do; for good, where nothing grows. Cancellation safe.
    pub(super) async fn wait_until_due(growth: Option<&mut ReservationGrowth>) {
        match growth {
            Some(ReservationGrowth::Stream(stream)) => stream.due().await,
            Some(ReservationGrowth::Continuation(funding)) => funding.ready().await,
            None => pending().await,
        }
    }
}

impl StreamGrowth {
    fn of(offer: &Offer, choices: u32) -> Option<StreamGrowth> {
        let Offer { opening, solution, samples, .. } = *offer;
        (opening < solution).then(|| {
            let answers = u64::from(choices) * u64::from(samples.max(1));
            let cover = ReservedOutput::new(opening * answers);
            StreamGrowth {
                cover,
                answers,
                each: opening,
                most: solution,
                steps: 0,
                extra: Money::ZERO,
                again: None,
            }
        })
    }

    /// Waits until there is something to do.
    async fn due(&self) {
        if self.is_over() {
            return pending().await;
        }
        if let Some(again) = self.again {
            tokio::time::sleep_until(again).await;
        }
        self.cover.half_used().await;
    }

    fn is_over(&self) -> bool {
        self.each >= self.most
    }

    /// What each answer is to be covered up to next.
    fn next(&self) -> Tokens {
        let is_last = self.steps + 1 >= STEPS_MAX;
        if is_last { self.most } else { (self.each * 2).max(Tokens(1)).min(self.most) }
    }

    /// All answers are covered up to there.
    fn cover_up_to(&mut self, each: Tokens, extra: Money) {
        let more = (each.saturating_sub(self.each)) * self.answers;
        (self.each, self.extra, self.again) = (each, extra, None);
        self.steps += 1;
        // Beyond its own limit no choice writes, so nothing else limits one that has got there.
        self.cover.extend(if self.is_over() { Tokens::MAX } else { more });
    }

    /// So many more tokens of all answers together are covered, though less than was wanted.
    fn cover_in_part(&mut self, more: Tokens, extra: Money) {
        self.extra = extra;
        self.steps += 1;
        self.cover.extend(more);
    }

    /// There will not be more.
    fn end(&mut self, ended: SolutionStopReason) {
        self.each = self.most;
        self.cover.end(ended);
    }

    /// True if a choice has waited so long.
    fn has_waited(&self, patience: Duration) -> bool {
        self.cover.waited().is_some_and(|waited| waited >= patience)
    }
}

/// When a running request is noted in the ledger: soon at first, so that what was written since is a small part of it.
struct Checkpoints {
    began: Instant,
    most: Duration,
    /// What was noted last, and when.
    last: Option<(Instant, Money)>,
}

impl Checkpoints {
    /// How long until the next one.
    fn next(&self) -> Duration {
        (self.began.elapsed() / CHECKPOINT_PART).clamp(CHECKPOINT_MIN.min(self.most), self.most)
    }

    /// What a request that has cost so much is likely to have cost when its note is read. That is half way to the next note on
    /// average, so what is written until then at the latest pace is added.
    fn likely(&mut self, cost: Money, wait: Duration) -> Money {
        let now = Instant::now();
        let before = self.last.replace((now, cost));
        let Some((at, less)) = before else { return cost };
        let passed = (now - at).as_secs_f64().max(1e-3);
        let age = (self.began.elapsed() / READING_PART).clamp(READING_AGE.0, READING_AGE.1);
        let part = (wait / 2 + age).as_secs_f64() / passed;
        cost + Money::from_dollars_up(cost.saturating_sub(less).as_dollars() * part)
    }
}

/// Runs beside a choice: meters what was taken so far, and reserves more if an answer grows.
pub(super) async fn meter_and_grow(
    context: &RequestContext,
    offer: &Offer,
    meters: &[Meter],
    mut growth: Option<&mut ReservationGrowth>,
    reservation: &mut RequestReservation,
) -> Infallible {
    context.state.live.watch(context.id, offer, meters);
    let (began, most) = (Instant::now(), context.parts().settings.meter_every);
    let mut checkpoints = Checkpoints { began, most, last: None };
    let mut due = began + checkpoints.next();
    loop {
        let grows = ReservationGrowth::wait_until_due(growth.as_deref_mut());
        tokio::select! {
            () = tokio::time::sleep_until(due) => {
                let wait = checkpoints.next();
                due = Instant::now() + wait;
                let spent: Vec<ChoiceUsage> = meters.iter().map(Meter::read).collect();
                let cost = context.cost(offer, &spent);
                reservation.meter(cost, checkpoints.likely(cost, wait), &spent);
            }
            () = grows => match growth.as_deref_mut() {
                Some(ReservationGrowth::Stream(stream)) => grow(context, offer, stream, reservation).await,
                Some(ReservationGrowth::Continuation(funding)) => fund_continuation(context, offer, funding, reservation).await,
                None => {}
            }
        }
    }
}

/// Reserves more for an answer that grows, as far as there is more.
async fn grow(
    context: &RequestContext,
    offer: &Offer,
    growth: &mut StreamGrowth,
    reservation: &mut RequestReservation,
) {
    let Some(tariff) = context.model(offer).and_then(|model| model.tariff) else {
        // What has no price takes no money.
        return growth.cover_up_to(growth.most, growth.extra);
    };
    let (each, began) = (growth.next(), Instant::now());
    let more = each.saturating_sub(growth.each) * growth.answers;
    let extra = growth.extra + tariff.output_cost_max(more);
    match reservation.extend_for_growth(offer, extra).await {
        Ok(()) => growth.cover_up_to(each, extra),
        Err(ExtensionError::RequestLimit { left }) => {
            grow_by_remainder(left, offer, &tariff, growth, reservation).await;
        }
        Err(ExtensionError::Shortfall(short)) => {
            let is_held = context.can_be_released(offer, &short, reservation.reserved_amounts());
            if is_held && !growth.has_waited(context.parts().settings.wait_max) {
                growth.again = Some(Instant::now() + LOOK_EVERY);
            } else {
                let left = short.money_left();
                grow_by_remainder(left, offer, &tariff, growth, reservation).await;
            }
        }
        Err(ExtensionError::LedgerUnavailable) => {
            let most = context.parts().ledger.dispatch_max();
            let is_late = growth.cover.waited().is_some() && began.elapsed() >= most;
            if is_late || growth.has_waited(most) {
                growth.end(SolutionStopReason::Ledger);
            }
            growth.again = Some(Instant::now() + LOOK_EVERY);
        }
    }
}

/// Takes what is left, where that is less than was wanted; nothing comes after it.
async fn grow_by_remainder(
    left: Money,
    offer: &Offer,
    tariff: &Tariff,
    growth: &mut StreamGrowth,
    reservation: &mut RequestReservation,
) {
    let more = tariff.output_for(left);
    let extra = growth.extra + tariff.output_cost_max(more);
    if more > Tokens::ZERO && reservation.extend_for_growth(offer, extra).await.is_ok() {
        growth.cover_in_part(more, extra);
    }
    growth.end(SolutionStopReason::Money);
}
