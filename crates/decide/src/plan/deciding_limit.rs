//! Which limit decided, where less than it allows was taken.

use stint_types::catalog::LogNormal;
use stint_types::units::Tokens;

use super::candidate_pool::CandidatePool;
use super::eligible_model::{EligibleModel, PricedCandidate, weighted_cost};
use super::frontier::PlanObjective;
use super::reason::BudgetReason;
use super::request::PlanRequest;
use super::smallest_cap::TOLERANCE;

/// How many longer thoughts are looked at.
const LONGER: usize = 4;

/// The limit that kept a chosen thought short, though it allows more than was taken: a thought that it rules out would be worth more.
pub(super) fn deciding_limit<'a>(
    request: &PlanRequest,
    pool: &CandidatePool<'a>,
    chosen: &PricedCandidate,
    objective: &PlanObjective,
) -> Option<BudgetReason<'a>> {
    let eligible = &pool.models[chosen.model_index];
    let by = eligible.budgets.ceiling.by;
    if !by.is_limit() || chosen.samples > 1 || chosen.escalation.is_some() {
        return None;
    }
    let budgets = usual_budgets(&eligible.terms.demand.thinking);
    if budgets.iter().all(|t| *t <= eligible.budgets.ceiling.most) {
        return None;
    }
    // A smaller cap was taken though it succeeds a little less often.
    let own = (chosen.success + TOLERANCE, chosen.weighted_cost);
    let all = std::iter::once(own).chain(longer(request, eligible, chosen, budgets));
    objective.best(all).filter(|at| *at > 0).map(|_| by)
}

/// How long a thought usually is, and up to three standard deviations of the length's logarithm more.
fn usual_budgets(thinking: &LogNormal) -> [Tokens; LONGER] {
    let (mut length, fold) = (thinking.median(), thinking.sigma.exp());
    std::array::from_fn(|_| {
        let one = Tokens::round(length);
        length *= fold;
        one
    })
}

/// Success and weighted cost of those of these thoughts that a model's ceiling rules out.
fn longer(
    request: &PlanRequest,
    eligible: &EligibleModel,
    chosen: &PricedCandidate,
    budgets: [Tokens; LONGER],
) -> impl Iterator<Item = (f64, f64)> {
    let (terms, most) = (&eligible.terms, eligible.budgets.ceiling.most);
    let moments = terms.truncated_at_each(&budgets);
    let is_possible = move |t: Tokens| most < t && t <= terms.model.thinking_max && terms.allows(t);
    budgets.into_iter().zip(moments).filter(move |(t, _)| is_possible(*t)).map(move |(t, moments)| {
        let expected = terms.expectation(t, chosen.answer.most, &moments);
        let dollars = expected.dollars + terms.held_dollars(t);
        (expected.success, weighted_cost(request, dollars, expected.seconds))
    })
}
