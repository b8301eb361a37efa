//! What a run keeps of its money for its last answer.

use stint_types::units::Money;

use super::budgets::worst_case;
use super::eligible_model::{EligibleModel, eligible_models};
use super::request::PlanRequest;

/// What an answer costs at most by the cheapest model, with the shortest thought that it can have: as long as answers hardly ever
/// are where that is at most `fair`, else as much as that, and at least a usual one. Nothing if no model can serve.
pub fn answer_cost(request: &PlanRequest, fair: Money) -> Option<Money> {
    let cost = |eligible: &EligibleModel| {
        let EligibleModel { terms, bounds, budgets, .. } = eligible;
        let thought = budgets.as_slice().first().copied().unwrap_or(budgets.ceiling.most);
        let worst = |answer| worst_case(terms, bounds, thought, answer).money;
        worst(bounds.likely_max).min(fair).max(worst(bounds.least))
    };
    eligible_models(request, |_, _| ()).iter().map(cost).min()
}
