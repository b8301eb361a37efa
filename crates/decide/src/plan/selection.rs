//! The candidate to take, by its value or by a draw, and the best of the other models to fall back on.

use super::best_choice::best_by_value;
use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::explore::{self, ArmDraw, BanditArm, DrawnArm};
use super::frontier::{FrontierScratch, PlanObjective, SuccessRange};
use super::reason::{BudgetReason, SelectedBy};
use super::refine;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::success_min::success_min;

/// How many models are kept as fallbacks.
pub const FALLBACKS_MAX: usize = 3;

/// What was taken of the candidates.
pub(super) struct PlanSelection<'a> {
    /// The best candidate, then the best of each model not named before.
    pub ranked: Vec<RankedCandidate<'a>>,
    pub arms: Vec<BanditArm>,
    pub selected_by: SelectedBy,
    pub propensity: f64,
    /// The success that it had to reach because a preference or a thought is stated.
    pub success_min: Option<f64>,
    /// The better value that this left out.
    pub weaker: Option<PricedCandidate>,
    /// The better value that was left out because it is hardly better, and dearer.
    pub dearer: Option<PricedCandidate>,
}

/// A candidate that was taken, and what limits its thinking.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedCandidate<'a> {
    pub candidate: PricedCandidate,
    pub reason: BudgetReason<'a>,
}

/// Keeps the refusal that came nearest to an offer; of equals the first.
pub(super) fn keep_nearest(nearest: &mut Option<PlanRefusal>, refusal: PlanRefusal) {
    if nearest.as_ref().is_none_or(|known| refusal.nearness() > known.nearness()) {
        *nearest = Some(refusal);
    }
}

/// The best candidate, by worth or by a draw, and the best of the models next to it. Nothing, where there is no candidate.
pub(super) fn select<'a>(request: &PlanRequest, pool: &CandidatePool<'a>) -> Option<PlanSelection<'a>> {
    let objective = PlanObjective::of(request, success_min(request, pool));
    let mut scratch = FrontierScratch::default();
    let mut arms = explore::arms(pool, &objective);
    let ArmDraw { uncapped, drawn } = explore::draw_arm(request, pool, &mut arms, &objective);
    let (best, range) = match drawn {
        DrawnArm::One(drawn) => (arms.get(drawn)?.best, SuccessRange::WHOLE),
        DrawnArm::None | DrawnArm::Best => best_by_value(pool, &arms, &objective, &mut scratch)?,
    };
    let first = best.model_index;
    let most_valued = objective.best_of(arms.iter().map(|arm| &arm.best)).copied();
    let mut ranked = Vec::with_capacity(1 + FALLBACKS_MAX);
    ranked.push(best);
    while let (true, Some(next)) = (ranked.len() <= FALLBACKS_MAX, next_best(&arms, &ranked, &objective)) {
        ranked.push(next);
    }
    ranked[0] = refine::refine(request, pool, best, range, &objective, &mut scratch);
    let mut ranked: Vec<RankedCandidate> = ranked
        .into_iter()
        .map(|candidate| RankedCandidate { candidate, reason: pool.reason(&candidate) })
        .collect();
    if let Some(candidate) = uncapped.then(|| pool.longest(request, first)).flatten() {
        ranked[0] = RankedCandidate { candidate, reason: BudgetReason::Uncapped };
    }
    let arm = arms.iter_mut().find(|arm| arm.best.model_index == first)?;
    arm.best = ranked[0].candidate;
    let selected_by = match drawn {
        DrawnArm::One(_) => SelectedBy::Drawn,
        DrawnArm::None | DrawnArm::Best => SelectedBy::Valued,
    };
    if drawn == DrawnArm::None {
        arm.propensity = 1.0;
    }
    let propensity = arm.propensity;
    let success_min = objective.floor;
    let by_thought = success_min.filter(|_| request.budget.preference.is_none());
    let weaker = by_thought.and_then(|least| {
        let best = PlanObjective::of_value(request).best_of(&pool.candidates).copied();
        best.filter(|best| best.success < least && selected_by == SelectedBy::Valued)
    });
    let dearer = most_valued.filter(|most| {
        let is_other = most.model_index != first && selected_by == SelectedBy::Valued;
        is_other && success_min.is_none()
    });
    Some(PlanSelection { ranked, arms, selected_by, propensity, success_min, weaker, dearer })
}

/// The best of the models that are not ranked yet.
fn next_best(
    arms: &[BanditArm],
    ranked: &[PricedCandidate],
    objective: &PlanObjective,
) -> Option<PricedCandidate> {
    let is_left = |arm: &&BanditArm| ranked.iter().all(|one| one.model_index != arm.best.model_index);
    let best =
        objective.best(arms.iter().filter(is_left).map(|arm| (arm.best.success, arm.best.weighted_cost)))?;
    arms.iter().filter(is_left).nth(best).map(|arm| arm.best)
}
