//! The success that a choice must reach: where its caller states a preference, and where they state a thought.
//!
//! Thoughts of one length cost most on the models that are best. By value alone, who asks for more effort would get a smaller
//! model. So a stated thought leads to none that is weaker than the one that would be chosen without it.

use stint_types::chat::Budget;
use stint_types::units::Tokens;

use super::best_choice::best_arm;
use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::explore;
use super::frontier::{FrontierScratch, PlanObjective, SuccessRange};
use super::refine;
use super::request::PlanRequest;

/// The success that the choice must reach; nothing where value alone decides.
pub(super) fn success_min(request: &PlanRequest, pool: &CandidatePool) -> Option<f64> {
    match request.budget.preference {
        Some(_) => Some(good_enough(request, pool)),
        None => with_stated_thought(request, pool),
    }
}

/// The route's floor, or what the best value reaches where that is less: so a preference of 0 is no dearer than none. It depends on
/// no preference, so that more of it never yields less.
fn good_enough(request: &PlanRequest, pool: &CandidatePool) -> f64 {
    let floor = request.route.success_floor.get();
    let value = PlanObjective::of_value(request);
    let arms = explore::arms(pool, &value);
    let Some(usual) = best_arm(&arms, &value) else { return floor };
    let mut scratch = FrontierScratch::default();
    let usual = refine::refine(request, pool, usual.best, SuccessRange::WHOLE, &value, &mut scratch);
    usual.success.min(floor)
}

/// Where a thought is stated, what the model that would be chosen without it reaches with it. If that model cannot serve with it,
/// what it would reach without.
fn with_stated_thought(request: &PlanRequest, pool: &CandidatePool) -> Option<f64> {
    if pool.models.len() < 2 || !is_stated(request.budget) {
        return None;
    }
    let budget = Budget { thinking: None, reasoning_effort: None, ..request.budget.clone() };
    let open = PlanRequest { budget: &budget, explore: None, ..*request };
    let others = CandidatePool::of(&open, |_, _| ());
    let value = PlanObjective::of_value(request);
    let arms = explore::arms(&others, &value);
    let usual = &best_arm(&arms, &value)?.best;
    let name = &others.models[usual.model_index].terms.model.name;
    let is_own = |one: &&PricedCandidate| pool.models[one.model_index].terms.model.name == *name;
    let own = value.best_of(pool.candidates.iter().filter(is_own));
    Some(own.unwrap_or(usual).success)
}

/// True if some thought is asked for: by a number of tokens, or by an effort.
fn is_stated(budget: &Budget) -> bool {
    let effort = budget.reasoning_effort.as_ref().map(|depth| depth.effort.get());
    match budget.thinking {
        Some(thinking) => thinking > Tokens::ZERO,
        None => effort.is_some_and(|effort| effort > 0.0),
    }
}
