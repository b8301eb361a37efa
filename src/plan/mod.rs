//! What a request's thinking is worth, and who does it: demand × market × allowance → offers, best first.
//!
//! Pure. For each model that can serve the request, a few thinking budgets are priced by the formulas in
//! `terms`; what cannot be reserved is never offered; `frontier` takes the best. A plan reserves nothing
//! itself, buys no samples or cascades, and explores nothing: it takes the demand's chances as they are.

mod bounds;
mod budgets;
mod frontier;
mod purse;
mod refusal;
mod terms;
#[cfg(test)]
mod tests;
mod why;

use crate::catalog::{Allowance, Class, Demand, Market, Model, Needs, Offer, Plan, Route};
use crate::chat::Budget;
use crate::units::{Chance, Money, Tokens};

pub use refusal::Refusal;

use bounds::Bounds;
use budgets::Budgets;
use frontier::Candidate;
use purse::Purse;
use terms::{Expected, Terms};
use why::Reason;

/// Which way of choosing this is, for those who judge decisions afterwards; another one has another name.
pub const POLICY: &str = "value-1";

/// All that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// How hard the request is.
    pub demand: &'a Demand,
    /// The models that the route may choose; of equals the first is taken.
    pub models: &'a [&'a Model],
    /// What success and time are worth.
    pub route: &'a Route,
    /// What things cost now.
    pub market: &'a Market,
    /// What the caller may still spend.
    pub allowance: &'a Allowance,
    /// What the caller stated.
    pub budget: &'a Budget,
    /// What the model must be able to do.
    pub needs: &'a Needs,
    /// How many answers are wanted.
    pub choices: u32,
    /// True where the caller is sent the answer as it is written, which one that is still to be chosen cannot be.
    pub streams: bool,
    /// The model that the episode is with, if it is with one.
    pub sticky: Option<Sticky<'a>>,
    /// Where a model is to be drawn rather than taken by its mean.
    pub explore: Option<Explore>,
}

/// The model that the last turns of an episode were served by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sticky<'a> {
    /// Its name.
    pub model: &'a str,
    /// How much of the prompt its provider still has in its cache: any other model reads that anew, at its full price.
    pub cached: Tokens,
    /// Whether something went wrong with it (errors, stalls, failed checks): without that no dearer model is offered.
    pub evidence: bool,
}

/// How a model is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explore {
    /// What the draw is made from: of equal seeds, equal draws.
    pub seed: u64,
    /// The share of requests that are spread evenly over all models.
    pub floor: Chance,
}

/// Plans a request.
///
/// # Errors
/// When no model can serve it within its budgets; of several models' refusals, the one that came nearest.
pub fn plan(ask: &Ask) -> Result<Plan, Refusal> {
    let mut candidates = Vec::new();
    let mut nearest = Refusal::Unhealthy;
    let mut refused = false;
    for model in ask.models {
        match offers(ask, model) {
            Ok(more) => candidates.extend(more),
            Err(refusal) if !refused || refusal.nearness() > nearest.nearness() => {
                (nearest, refused) = (refusal, true);
            }
            Err(_) => {}
        }
    }
    let ranked = frontier::ranked(&candidates, ask.route, ask.budget.preference);
    let why = why::why(ask.demand, &ranked);
    let mut offers = ranked.into_iter().map(|candidate| candidate.offer.clone());
    let best = offers.next().ok_or(nearest)?;
    Ok(Plan { best, fallbacks: offers.collect(), propensity: 1.0, contenders: Vec::new(), why })
}

/// One model's offers, each within all limits.
fn offers(ask: &Ask, model: &Model) -> Result<Vec<Candidate>, Refusal> {
    let terms = Terms::of(ask, model)?;
    let bounds = Bounds::of(ask, &terms)?;
    let budgets = Budgets::of(ask, &terms, &bounds)?;
    let purse = Purse::whole(ask, &model.name);
    let candidates = budgets.each.iter().map(|&thinking| {
        let solution = budgets::solution(&terms, &bounds, &purse, thinking);
        let reason =
            if thinking == budgets.ceiling.most { budgets.ceiling.by.clone() } else { Reason::Value };
        candidate(ask, &terms, (thinking, solution), reason)
    });
    Ok(candidates.filter(|candidate| purse.holds(candidate.offer.worst)).collect())
}

/// Prices one pair of budgets.
fn candidate(ask: &Ask, terms: &Terms, (thinking, solution): (Tokens, Tokens), reason: Reason) -> Candidate {
    let success = rounded(terms.demand.success(thinking));
    let Expected { dollars, seconds } = terms.expected(thinking, solution);
    let burden = ask.market.shadow_price.max(0.0) * dollars + ask.route.second.as_dollars() * seconds;
    let offer = Offer {
        model: terms.model.name.clone(),
        class: terms.class,
        resume: terms.resume,
        thinking,
        solution,
        overhead: terms.overhead(),
        rescue: terms.may_be_rescued(),
        effort: effort(ask, terms, thinking, &reason),
        samples: 1,
        escalate: None,
        success,
        cost: Money::from_dollars_up(dollars),
        worst: terms.worst(thinking, solution),
        seconds,
        value: ask.route.worth.as_dollars() * success.get() - burden,
    };
    Candidate { offer, burden, reason }
}

/// Success to a ten-thousandth: finer differences are noise, and should not buy tokens.
fn rounded(success: Chance) -> Chance {
    Chance::new((success.get() * 1e4).round() / 1e4)
}

/// The word to send to a model with efforts: the caller's own where it has it and nothing lowered it, else
/// the highest whose usual thought fits the budget, or the lowest.
fn effort(ask: &Ask, terms: &Terms, thinking: Tokens, reason: &Reason) -> Option<String> {
    let model = terms.model;
    if terms.class != Class::Effort {
        return None;
    }
    let stated = ask.budget.depth.as_ref().and_then(|depth| depth.word.as_deref());
    let own = model.efforts.iter().find(|level| *reason == Reason::Effort && stated == Some(&level.word));
    let fitting = model.efforts.iter().rfind(|level| level.usual <= thinking && thinking > Tokens::ZERO);
    own.or(fitting).or(model.efforts.first()).map(|level| level.word.clone())
}
