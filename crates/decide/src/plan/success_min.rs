//! The success that a choice must reach: where its caller states a preference, and where they state a thought.
//!
//! Thoughts of one length cost most on the models that are best. By value alone, who asks for more effort would get a smaller
//! model. So a stated thought leads to none that is weaker than the one that would be chosen without it, and a word of effort to
//! none that is weaker than the choice for a lower word.

use std::sync::Arc;

use stint_types::catalog::{EFFORT_SHARES, EFFORT_WORDS, effort_rank};
use stint_types::chat::{Budget, ReasoningEffort};
use stint_types::units::{Effort, Tokens};

use super::best_choice::{best_arm, best_by_value};
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

/// Where a thought is stated, what the model that would be chosen without it reaches with it, or the choice for a lower word of
/// effort where that is more.
fn with_stated_thought(request: &PlanRequest, pool: &CandidatePool) -> Option<f64> {
    if pool.models.len() < 2 || !is_stated(request.budget) {
        return None;
    }
    let unstated = UnstatedChoice::of(request)?;
    let own = unstated.success_in(request, pool);
    // More than the best of all is reached by nothing.
    let is_most = pool.candidates.iter().all(|one| one.success <= own);
    let lower = if is_most { None } else { with_lower_words(request, &unstated) };
    Some(lower.map_or(own, |lower| lower.max(own)))
}

/// What the choice for the next lower word of effort reaches: found from the least word on, since each reaches what those below it do.
fn with_lower_words(request: &PlanRequest, unstated: &UnstatedChoice) -> Option<f64> {
    let stated = request.budget.reasoning_effort.as_ref().filter(|_| request.budget.thinking.is_none())?;
    let mut scratch = FrontierScratch::default();
    let mut reached: Option<f64> = None;
    for lower in lower_words(stated) {
        let budget = Budget { reasoning_effort: Some(lower), ..request.budget.clone() };
        let asked = PlanRequest { budget: &budget, explore: None, ..*request };
        let pool = CandidatePool::of(&asked, |_, _| ());
        let has_floor = pool.models.len() > 1 && is_stated(&budget);
        let own = has_floor.then(|| unstated.success_in(&asked, &pool));
        let floor = own.map(|own| reached.map_or(own, |reached| reached.max(own)));
        let objective = PlanObjective::of(&asked, floor);
        let arms = explore::arms(&pool, &objective);
        let chosen = best_by_value(&pool, &arms, &objective, &mut scratch);
        reached = chosen.map(|(chosen, _)| chosen.success).or(reached);
    }
    reached
}

/// The standard words below a stated effort, the least first, each with its usual share. What the operator says of words instead is not
/// known here.
fn lower_words(stated: &ReasoningEffort) -> impl Iterator<Item = ReasoningEffort> {
    let (most, rank) = (stated.effort.get(), stated.word.as_deref().and_then(effort_rank));
    let is_lower = move |at: usize, share: f64| match rank {
        Some(rank) => at < rank && share <= most,
        None => share < most,
    };
    let words = EFFORT_WORDS.into_iter().zip(EFFORT_SHARES).enumerate();
    words.filter(move |(at, (_, share))| is_lower(*at, *share)).filter_map(|(_, (word, share))| {
        Some(ReasoningEffort { effort: Effort::try_from(share).ok()?, word: Some(word.to_owned()) })
    })
}

/// What would be chosen if no thought were stated.
struct UnstatedChoice {
    model: Arc<str>,
    success: f64,
}

impl UnstatedChoice {
    fn of(request: &PlanRequest) -> Option<UnstatedChoice> {
        let budget = Budget { thinking: None, reasoning_effort: None, ..request.budget.clone() };
        let open = PlanRequest { budget: &budget, explore: None, ..*request };
        let pool = CandidatePool::of(&open, |_, _| ());
        let value = PlanObjective::of_value(request);
        let arms = explore::arms(&pool, &value);
        let PricedCandidate { model_index, success, .. } = best_arm(&arms, &value)?.best;
        Some(UnstatedChoice { model: pool.models[model_index].terms.model.name.clone(), success })
    }

    /// What its model reaches with the thought that is stated. If it cannot serve with it, what it would reach without.
    fn success_in(&self, request: &PlanRequest, pool: &CandidatePool) -> f64 {
        let is_own = |one: &&PricedCandidate| pool.models[one.model_index].terms.model.name == self.model;
        let own = PlanObjective::of_value(request).best_of(pool.candidates.iter().filter(is_own));
        own.map_or(self.success, |own| own.success)
    }
}

/// True if some thought is asked for: by a number of tokens, or by an effort.
fn is_stated(budget: &Budget) -> bool {
    let effort = budget.reasoning_effort.as_ref().map(|depth| depth.effort.get());
    match budget.thinking {
        Some(thinking) => thinking > Tokens::ZERO,
        None => effort.is_some_and(|effort| effort > 0.0),
    }
}
