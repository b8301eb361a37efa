//! What a request's thinking is worth, and who does it: demand × market × allowance → offers, best first.
//!
//! Pure. For each model that can serve the request, a few thinking budgets are priced by the formulas in
//! `terms`, then votes and cascades of them, where the route has them, in the same terms (`board`); what cannot be
//! reserved is never offered; `frontier` takes the best, and `refine` finds the budget near it at which more thinking
//! stops to pay. Where a route explores, the model is drawn (`explore`). A plan reserves nothing itself. A quote shows
//! all that was priced.

mod answer_cost;
mod answer_limit;
mod bounds;
mod budgets;
mod candidate_pool;
mod explain;
mod explore;
mod frontier;
mod offer;
mod quote;
mod refine;
mod refusal;
mod spend_caps;
mod terms;
#[cfg(test)]
mod tests;

use crate::catalog::{Allowance, Demand, Market, Model, Needs, Plan, Route};
use crate::chat::Budget;
use crate::units::{Chance, Tokens};

pub use answer_cost::answer_cost;
pub use quote::{Quote, quote};
pub use refusal::{PlanRefusal, RejectedBy};

use candidate_pool::{CandidatePool, PricedCandidate};
use explain::{BudgetReason, SelectedBy};
use explore::{ArmDraw, BanditArm};
use frontier::{FrontierScratch, PlanObjective, SuccessRange, sort_by_cost};
use offer::offer;

/// How many models are kept as fallbacks.
pub const FALLBACKS_MAX: usize = 3;

/// Which way of choosing this is, for those who judge decisions afterwards; another one has another name.
pub const POLICY: &str = "value-1";

/// What share of answers a first reservation covers where the operator says nothing of it.
pub const OPENING_QUANTILE: f64 = 0.99;

/// All that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest<'a> {
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
    pub sticky: Option<StickyModel<'a>>,
    /// Where a model is to be drawn rather than taken by its mean.
    pub explore: Option<Exploration>,
    /// What share of answers the first reservation of one is to cover, where money is limited.
    pub opening_quantile: Chance,
}

/// The model that the last turns of an episode were served by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StickyModel<'a> {
    /// Its name.
    pub model: &'a str,
    /// How much of the prompt its provider still has in its cache: any other model reads that anew, at its full price.
    pub cached: Tokens,
    /// Whether something went wrong with it (errors, stalls, failed checks): without that no dearer model is offered.
    pub has_problems: bool,
}

/// How a model is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exploration {
    /// What the draw is made from: of equal seeds, equal draws.
    pub seed: u64,
    /// The share of requests that are spread evenly over all models.
    pub floor: Chance,
}

/// What was taken of a board.
struct PlanSelection<'a> {
    /// The best candidate, then the best of each model not named before.
    ranked: Vec<(PricedCandidate, BudgetReason<'a>)>,
    arms: Vec<BanditArm>,
    selected_by: SelectedBy,
    propensity: f64,
}

/// Plans a request.
///
/// # Errors
/// When no model can serve it within its budgets; of several models' refusals, the one that came nearest.
pub fn plan(ask: &PlanRequest) -> Result<Plan, PlanRefusal> {
    let mut nearest = None;
    let board = CandidatePool::of(ask, |_, refusal| keep_nearest(&mut nearest, refusal));
    let taken = select(ask, &board).ok_or_else(|| nearest.unwrap_or(PlanRefusal::Unhealthy))?;
    let mut offers = taken.ranked.iter().map(|(candidate, reason)| offer(ask, &board, candidate, *reason));
    let best = offers.next().ok_or(PlanRefusal::Unhealthy)?;
    let fallbacks: Vec<_> = offers.collect();
    let why =
        explain::explain(ask, (&best, board.reasons(&taken.ranked[0])), taken.selected_by, fallbacks.first());
    let contenders = taken.arms.iter().map(|stand| offer::contender(ask, &board, stand)).collect();
    Ok(Plan { best, fallbacks, propensity: taken.propensity, contenders, why })
}

/// Keeps the refusal that came nearest to an offer; of equals the first.
fn keep_nearest(nearest: &mut Option<PlanRefusal>, refusal: PlanRefusal) {
    if nearest.as_ref().is_none_or(|known| refusal.nearness() > known.nearness()) {
        *nearest = Some(refusal);
    }
}

/// The best candidate, by worth or by a draw, and the best of the models next to it. Nothing, where there is no candidate.
fn select<'a>(ask: &PlanRequest, board: &CandidatePool<'a>) -> Option<PlanSelection<'a>> {
    let aim = PlanObjective::of(ask);
    let mut scratch = FrontierScratch::default();
    let mut stands = explore::arms(board, &aim);
    let ArmDraw { uncapped, drawn } = explore::draw_arm(ask, board, &mut stands, &aim);
    let (best, cell) = match drawn {
        Some(drawn) => (stands.get(drawn)?.best, SuccessRange::WHOLE),
        None => best_by_value(board, &stands, &aim, &mut scratch)?,
    };
    let first = best.model_index;
    let mut ranked = Vec::with_capacity(1 + FALLBACKS_MAX);
    ranked.push(best);
    while let (true, Some(next)) = (ranked.len() <= FALLBACKS_MAX, next_best(&stands, &ranked, &aim)) {
        ranked.push(next);
    }
    ranked[0] = refine::refine(ask, board, (best, cell), &aim, &mut scratch);
    let mut ranked: Vec<(PricedCandidate, BudgetReason)> =
        ranked.into_iter().map(|best| (best, board.reason(&best))).collect();
    if let Some(longest) = uncapped.then(|| board.longest(ask, first)).flatten() {
        ranked[0] = (longest, BudgetReason::Uncapped);
    }
    let stand = stands.iter_mut().find(|stand| stand.best.model_index == first)?;
    stand.best = ranked[0].0;
    if drawn.is_none() {
        stand.propensity = 1.0;
    }
    let (propensity, found) =
        (stand.propensity, if drawn.is_some() { SelectedBy::Drawn } else { SelectedBy::Valued });
    Some(PlanSelection { ranked, arms: stands, selected_by: found, propensity })
}

/// The best of all, by worth.
fn best_by_value(
    board: &CandidatePool,
    stands: &[BanditArm],
    aim: &PlanObjective,
    scratch: &mut FrontierScratch,
) -> Option<(PricedCandidate, SuccessRange)> {
    if aim.floor.is_none() {
        let best = aim.best(stands.iter().map(|stand| (stand.best.success, stand.best.weighted_cost)))?;
        return Some((stands[best].best, SuccessRange::WHOLE));
    }
    let mut order: Vec<usize> = (0..board.candidates.len()).collect();
    sort_by_cost(&board.candidates, &mut order);
    let choice = scratch.choose(&board.candidates, &order, aim, SuccessRange::WHOLE)?;
    Some((board.candidates[choice.at], choice.range))
}

/// The best of the models that are not ranked yet.
fn next_best(
    stands: &[BanditArm],
    ranked: &[PricedCandidate],
    aim: &PlanObjective,
) -> Option<PricedCandidate> {
    let is_left = |stand: &&BanditArm| ranked.iter().all(|one| one.model_index != stand.best.model_index);
    let best =
        aim.best(stands.iter().filter(is_left).map(|stand| (stand.best.success, stand.best.weighted_cost)))?;
    stands.iter().filter(is_left).nth(best).map(|stand| stand.best)
}
