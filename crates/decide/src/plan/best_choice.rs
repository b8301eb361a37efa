//! What is chosen where nothing is drawn.

use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::explore::BanditArm;
use super::frontier::{FrontierScratch, PlanObjective, SuccessRange, sort_by_cost};

/// The best of all candidates, and the success between which nothing else would be chosen; `arms` are each model's best.
pub(super) fn best_by_value(
    pool: &CandidatePool,
    arms: &[BanditArm],
    objective: &PlanObjective,
    scratch: &mut FrontierScratch,
) -> Option<(PricedCandidate, SuccessRange)> {
    if objective.floor.is_none() {
        return Some((best_arm(arms, objective)?.best, SuccessRange::WHOLE));
    }
    let mut order: Vec<usize> = (0..pool.candidates.len()).collect();
    sort_by_cost(&pool.candidates, &mut order);
    let choice = scratch.choose(&pool.candidates, &order, objective, SuccessRange::WHOLE)?;
    Some((pool.candidates[choice.at], choice.range))
}

/// The best model.
pub(super) fn best_arm<'a>(arms: &'a [BanditArm], objective: &PlanObjective) -> Option<&'a BanditArm> {
    let best = objective.best_model(arms.iter().map(|arm| (arm.best.success, arm.best.weighted_cost)))?;
    arms.get(best)
}
