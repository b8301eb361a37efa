//! A thinking budget between those of the grid, so that what is chosen is what pays and not where the grid happens to be.
//!
//! More thinking pays while the hazard, the chance that the thought is about to finish, times what finishing is worth,
//! exceeds the price of a token. Value rises up to there and falls beyond, so it is looked for between the budgets beside
//! the best one, twice, ever closer.

use stint_types::units::Tokens;

use super::candidate_pool::{CandidatePool, is_odd_vote};
use super::eligible_model::PricedCandidate;
use super::frontier::{FrontierChoice, FrontierScratch, PlanObjective, SuccessRange, sort_by_cost};
use super::request::PlanRequest;
use super::smallest_cap::smallest_cap;

/// How often it is looked closer.
const ROUNDS: usize = 2;
/// How many budgets are looked at each time, beside the best so far.
const POINTS: u32 = 6;

/// The best of a candidate and others like it with a little more or less thinking.
pub(super) fn refine(
    request: &PlanRequest,
    pool: &CandidatePool,
    from: PricedCandidate,
    within: SuccessRange,
    objective: &PlanObjective,
    scratch: &mut FrontierScratch,
) -> PricedCandidate {
    let eligible = &pool.models[from.model_index];
    if eligible.budgets.fixed || from.escalation.is_some() {
        return from;
    }
    // Between words there is nothing to ask for.
    let rounds = if eligible.terms.is_held_by_words() { 0 } else { ROUNDS };
    let (mut best, mut range) = (from, within);
    let (mut low, mut high) = eligible.budgets.neighbors(from.thinking);
    for _ in 0..rounds {
        // Nothing lies between, as where a model does not think.
        if low == high {
            break;
        }
        let mut near = [best; 1 + POINTS as usize];
        let mut count = 1;
        let points = between(low, high);
        let points = || points.into_iter().filter(|t| low < *t && *t < high);
        for t in points().filter(|t| eligible.terms.allows(*t)) {
            let is_new = near[..count].iter().all(|other| other.thinking != t);
            let priced = is_new.then(|| reprice(request, pool, &from, t)).flatten();
            if let Some(candidate) = priced.filter(|candidate| range.contains(candidate.success)) {
                near[count] = candidate;
                count += 1;
            }
        }
        let near = &near[..count];
        let mut order: [usize; 1 + POINTS as usize] = std::array::from_fn(|at| at);
        let order = &mut order[..count];
        sort_by_cost(near, order);
        let Some(choice) = scratch.choose(near, order, objective, range) else { break };
        let FrontierChoice { at, range: narrower } = choice;
        (best, range) = (near[at], narrower);
        let nearest = |below: bool, end: Tokens| {
            let others = points().filter(|t| if below { *t < best.thinking } else { *t > best.thinking });
            if below { others.max().unwrap_or(end) } else { others.min().unwrap_or(end) }
        };
        (low, high) = (nearest(true, low.min(best.thinking)), nearest(false, high.max(best.thinking)));
    }
    // Who wants the best regardless has it to the last.
    if objective.worth.is_infinite() { best } else { smallest_cap(request, pool, best, range) }
}

/// Budgets from one to another, log-spaced; of close ones some may be the ends themselves.
fn between(low: Tokens, high: Tokens) -> [Tokens; POINTS as usize] {
    let (first, last) = (low.as_f64().max(1.0), high.as_f64().max(1.0));
    let step = (last / first).powf(f64::from(POINTS + 1).recip());
    let mut at = first;
    std::array::from_fn(|_| {
        at *= step;
        Tokens::round(at)
    })
}

/// The same with another thinking budget.
pub(super) fn reprice(
    request: &PlanRequest,
    pool: &CandidatePool,
    like: &PricedCandidate,
    t: Tokens,
) -> Option<PricedCandidate> {
    let eligible = &pool.models[like.model_index];
    let one = eligible.price_single(request, like.model_index, t)?;
    if like.samples == 1 {
        return Some(one);
    }
    let odds = request.route.vote.as_ref()?.odds().iter().find(|odds| odds.samples == like.samples)?;
    debug_assert!(is_odd_vote(odds), "votes are odd");
    eligible.price_vote(request, &one, odds)
}
