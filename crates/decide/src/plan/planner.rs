//! The plan of a request: what was selected, as offers, with the reason.

use stint_types::catalog::Plan;
use stint_types::units::Chance;

use super::candidate_pool::CandidatePool;
use super::explain::{explain, note_excluded, with_excluded};
use super::offer::{contender, offer};
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::selection::{keep_nearest, select};

/// Which way of choosing this is, for those who judge decisions afterwards; another one has another name.
pub const POLICY: &str = "value-2";

/// Plans a request.
///
/// # Errors
/// When no model can serve it within its budgets; of several models' refusals, the one that came nearest.
pub fn plan(request: &PlanRequest) -> Result<Plan, PlanRefusal> {
    let (mut nearest, mut excluded) = (None, None);
    let pool = CandidatePool::of(request, |model, refusal| {
        note_excluded(&mut excluded, model, &refusal);
        keep_nearest(&mut nearest, refusal);
    });
    let selection = select(request, &pool).ok_or_else(|| nearest.unwrap_or(PlanRefusal::Unhealthy))?;
    let mut offers =
        selection.ranked.iter().map(|ranked| offer(request, &pool, &ranked.candidate, ranked.reason));
    let best = offers.next().ok_or(PlanRefusal::Unhealthy)?;
    let fallbacks: Vec<_> = offers.collect();
    let why = with_excluded(explain(request, &pool, &selection, &best, fallbacks.first()), excluded);
    let contenders = selection.arms.iter().map(|arm| contender(request, &pool, arm)).collect();
    let success_min = selection.success_min.map(Chance::new);
    Ok(Plan { best, fallbacks, propensity: selection.propensity, contenders, success_min, why })
}
