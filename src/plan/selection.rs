//! The candidate to take, by its value or by a draw, and the best of the other models to fall back on.

use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::explore::{self, ArmDraw, BanditArm};
use super::frontier::{FrontierScratch, PlanObjective, SuccessRange, sort_by_cost};
use super::reason::{BudgetReason, SelectedBy};
use super::refine;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;

/// How many models are kept as fallbacks.
pub const FALLBACKS_MAX: usize = 3;

/// What was taken of a board.
pub(super) struct PlanSelection<'a> {
    /// The best candidate, then the best of each model not named before.
    pub ranked: Vec<(PricedCandidate, BudgetReason<'a>)>,
    pub arms: Vec<BanditArm>,
    pub selected_by: SelectedBy,
    pub propensity: f64,
}

/// Keeps the refusal that came nearest to an offer; of equals the first.
pub(super) fn keep_nearest(nearest: &mut Option<PlanRefusal>, refusal: PlanRefusal) {
    if nearest.as_ref().is_none_or(|known| refusal.nearness() > known.nearness()) {
        *nearest = Some(refusal);
    }
}

/// The best candidate, by worth or by a draw, and the best of the models next to it. Nothing, where there is no candidate.
pub(super) fn select<'a>(ask: &PlanRequest, board: &CandidatePool<'a>) -> Option<PlanSelection<'a>> {
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
