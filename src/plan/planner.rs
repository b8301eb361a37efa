//! The plan of a request: what was selected, as offers, with the reason.

use crate::catalog::Plan;

use super::candidate_pool::CandidatePool;
use super::explain::explain;
use super::offer::{contender, offer};
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::selection::{keep_nearest, select};

/// Which way of choosing this is, for those who judge decisions afterwards; another one has another name.
pub const POLICY: &str = "value-1";

/// Plans a request.
///
/// # Errors
/// When no model can serve it within its budgets; of several models' refusals, the one that came nearest.
pub fn plan(ask: &PlanRequest) -> Result<Plan, PlanRefusal> {
    let mut nearest = None;
    let board = CandidatePool::of(ask, |_, refusal| keep_nearest(&mut nearest, refusal));
    let taken = select(ask, &board).ok_or_else(|| nearest.unwrap_or(PlanRefusal::Unhealthy))?;
    let mut offers = taken.ranked.iter().map(|(candidate, reason)| offer(ask, &board, candidate, *reason));
    let best = offers.next().ok_or(PlanRefusal::Unhealthy)?;
    let fallbacks: Vec<_> = offers.collect();
    let why = explain(ask, (&best, board.reasons(&taken.ranked[0])), taken.selected_by, fallbacks.first());
    let contenders = taken.arms.iter().map(|stand| contender(ask, &board, stand)).collect();
    Ok(Plan { best, fallbacks, propensity: taken.propensity, contenders, why })
}
