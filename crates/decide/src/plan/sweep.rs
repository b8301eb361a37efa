//! What would be chosen if a right answer were worth less or more: the plan, made over a grid of worths.
//!
//! Neighbours that choose alike are one range. Its ends are found by halving between the grid's points.

use std::ops::RangeInclusive;
use std::sync::Arc;

use stint_types::catalog::{Market, Offer, Route};
use stint_types::units::{Chance, Money, Tokens};

use super::planner::plan;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;

/// The least and the greatest worth that is tried: a thousandth of a cent, and a hundred dollars.
const LEAST: f64 = 1e-5;
const DECADES: u32 = 7;
/// Worths that are tried for each power of ten.
const PER_DECADE: u32 = 8;
/// How often an end is looked for more closely, each time twice as near: to a thousandth of itself.
const HALVINGS: u32 = 8;

/// A range of worths at which the same is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct WorthRange {
    /// From which worth to which.
    pub worth: RangeInclusive<Money>,
    /// Who answers.
    pub model: Arc<str>,
    /// The word that it is sent, where it takes one.
    pub effort: Option<String>,
    /// How many answers at most.
    pub samples: u32,
    /// Who is asked where they are in doubt.
    pub escalates_to: Option<Arc<str>>,
    /// The thinking budgets in it.
    pub thinking: RangeInclusive<Tokens>,
    /// The predicted success.
    pub success: RangeInclusive<Chance>,
    /// The expected cost.
    pub cost: RangeInclusive<Money>,
}

impl WorthRange {
    /// True if more than one answer may be made.
    pub fn acts(&self) -> bool {
        self.samples > 1 || self.escalates_to.is_some()
    }

    fn of(worth: Money, offer: &Offer) -> WorthRange {
        WorthRange {
            worth: worth..=worth,
            model: offer.model.clone(),
            effort: offer.effort.clone(),
            samples: offer.samples,
            escalates_to: offer.escalate.as_ref().map(|second| second.model.clone()),
            thinking: offer.thinking..=offer.thinking,
            success: offer.success..=offer.success,
            cost: offer.cost..=offer.cost,
        }
    }

    /// Whether the same is chosen. Of two budgets only that there is one counts: they grow with the worth, bit by bit.
    pub(super) fn is_like(&self, other: &WorthRange) -> bool {
        let choice = |range: &WorthRange| {
            let thinks = *range.thinking.end() > Tokens::ZERO;
            (range.model.clone(), range.effort.clone(), range.samples, range.escalates_to.clone(), thinks)
        };
        choice(self) == choice(other)
    }

    fn join(&mut self, next: &WorthRange) {
        self.worth = *self.worth.start()..=*next.worth.end();
        widen(&mut self.thinking, next.thinking.clone());
        widen(&mut self.cost, next.cost.clone());
        // Chances have no order of their own.
        let (low, high) = (self.success.start().get(), self.success.end().get());
        let (less, more) = (next.success.start().get(), next.success.end().get());
        self.success = Chance::new(low.min(less))..=Chance::new(high.max(more));
    }
}

fn widen<T: Copy + Ord>(range: &mut RangeInclusive<T>, by: RangeInclusive<T>) {
    *range = (*range.start()).min(*by.start())..=(*range.end()).max(*by.end());
}

/// What is chosen from which worth to which, from a thousandth of a cent to a hundred dollars. A worth here is what counts in
/// the end, whatever success a route is steered for.
///
/// # Errors
/// As [`plan`].
pub fn sweep(request: &PlanRequest) -> Result<Vec<WorthRange>, PlanRefusal> {
    let mut ranges: Vec<WorthRange> = Vec::new();
    for step in 0..=DECADES * PER_DECADE {
        let worth = LEAST * 10_f64.powf(f64::from(step) / f64::from(PER_DECADE));
        // A hair less, so that a hundred dollars are not a nano-dollar more.
        let next = chosen_at(request, Money::from_dollars_up(worth * (1.0 - 1e-14)))?;
        append(request, &mut ranges, next, HALVINGS)?;
    }
    Ok(ranges)
}

/// Appends what is chosen at a higher worth. Where that is another choice, what lies between is looked at first.
fn append(
    request: &PlanRequest,
    ranges: &mut Vec<WorthRange>,
    next: WorthRange,
    halvings: u32,
) -> Result<(), PlanRefusal> {
    match ranges.last_mut() {
        Some(last) if last.is_like(&next) => last.join(&next),
        Some(last) if halvings > 0 => {
            let (low, high) = (last.worth.end().as_dollars(), next.worth.start().as_dollars());
            let between = chosen_at(request, Money::from_dollars_up((low * high).sqrt()))?;
            append(request, ranges, between, halvings - 1)?;
            append(request, ranges, next, halvings - 1)?;
        }
        Some(_) | None => ranges.push(next),
    }
    Ok(())
}

fn chosen_at(request: &PlanRequest, worth: Money) -> Result<WorthRange, PlanRefusal> {
    let route = Route { worth, ..request.route.clone() };
    let market = Market { worth_factor: 1.0, ..request.market.clone() };
    let plan = plan(&PlanRequest { route: &route, market: &market, explore: None, ..*request })?;
    Ok(WorthRange::of(worth, &plan.best))
}
