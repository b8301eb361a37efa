//! The smallest thinking budget that succeeds about as often as the best one, so that caps follow difficulty: what hardly any
//! thought reaches sets money aside and buys nothing.

use stint_types::units::Tokens;

use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::frontier::SuccessRange;
use super::refine::reprice;
use super::request::PlanRequest;

/// So much less success is not worth a larger cap: a tenth of a point.
pub(super) const TOLERANCE: f64 = 0.001;
/// Of rounded chances.
const ROUNDING: f64 = 1e-9;

/// The candidate with the smallest budget that succeeds at most [`TOLERANCE`] less often, among those whose success is within
/// the range in which nothing else would be chosen: so a higher preference still never yields a lower success.
pub(super) fn smallest_cap(
    request: &PlanRequest,
    pool: &CandidatePool,
    best: PricedCandidate,
    within: SuccessRange,
) -> PricedCandidate {
    let eligible = &pool.models[best.model_index];
    let terms = &eligible.terms;
    let suffices = |t: Tokens| {
        let priced = reprice(request, pool, &best, t).filter(|_| terms.allows(t));
        priced.filter(|one| {
            let reaches = one.success >= best.success - TOLERANCE - ROUNDING;
            // A cut may cost more than the thought that it saves.
            reaches && within.contains(one.success) && one.weighted_cost <= best.weighted_cost
        })
    };
    if terms.is_held_by_words() {
        // Words are sent, so that only their lengths count.
        let smaller = eligible.budgets.as_slice().iter().take_while(|t| **t < best.thinking);
        return smaller.copied().find_map(suffices).unwrap_or(best);
    }
    let mut high = best;
    let mut low = terms.thinking_min();
    if low >= high.thinking {
        return best;
    }
    if let Some(least) = suffices(low) {
        return least;
    }
    while high.thinking > low + Tokens(1) {
        let middle = Tokens(u64::midpoint(low.0, high.thinking.0));
        match suffices(middle) {
            Some(smaller) => high = smaller,
            None => low = middle,
        }
    }
    high
}
