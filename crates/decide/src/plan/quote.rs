//! What a plan would be, with all that it would be chosen from: for those who ask before they spend.

use std::sync::Arc;

use stint_types::catalog::{Contender, Offer};

use super::candidate_pool::CandidatePool;
use super::explain::{explain, note_excluded, with_excluded};
use super::explore;
use super::frontier::PlanObjective;
use super::offer::{contender, offer};
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::selection::{keep_nearest, select};

/// Every offer for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// All offers, in the order of the models and of their budgets; votes and cascades behind them.
    pub offers: Vec<Offer>,
    /// Which of them a plan would take.
    pub chosen: usize,
    /// The best of each model, and the chance with which it would be taken.
    pub contenders: Vec<Contender>,
    /// The models that can serve nothing, and why.
    pub refused: Vec<(Arc<str>, PlanRefusal)>,
    /// One line on what decided.
    pub why: String,
}

/// Prices a request in full, by the means of what is believed: nothing is drawn, nothing bought, nothing set aside.
///
/// # Errors
/// As [`plan`](super::plan).
pub fn quote(request: &PlanRequest) -> Result<Quote, PlanRefusal> {
    let (explore, request) = (request.explore, &PlanRequest { explore: None, ..*request });
    let (mut nearest, mut excluded, mut refused) = (None, None, Vec::new());
    let pool = CandidatePool::of(request, |model, refusal| {
        note_excluded(&mut excluded, model, &refusal);
        refused.push((model.name.clone(), refusal.clone()));
        keep_nearest(&mut nearest, refusal);
    });
    let mut selection = select(request, &pool).ok_or_else(|| nearest.unwrap_or(PlanRefusal::Unhealthy))?;
    let priced = pool.candidates.iter();
    let mut offers: Vec<Offer> =
        priced.map(|candidate| offer(request, &pool, candidate, pool.reason(candidate))).collect();
    let first = selection.ranked[0];
    let best_offer = offer(request, &pool, &first.candidate, first.reason);
    let next = selection.ranked.get(1).map(|next| offer(request, &pool, &next.candidate, next.reason));
    let why = with_excluded(explain(request, &pool, &selection, &best_offer, next.as_ref()), excluded);
    let chosen = insert_offer(&mut offers, best_offer);
    if explore.is_some() {
        // The chances that a request would have, though none is drawn here.
        explore::draw_arm(
            &PlanRequest { explore, ..*request },
            &pool,
            &mut selection.arms,
            &PlanObjective::of(request, selection.success_min),
        );
    }
    let contenders = selection.arms.iter().map(|arm| contender(request, &pool, arm)).collect();
    Ok(Quote { offers, chosen, contenders, refused, why })
}

/// The index of an offer; a refined one is inserted before the next larger budget of its kind.
fn insert_offer(offers: &mut Vec<Offer>, best: Offer) -> usize {
    if let Some(at) = offers.iter().position(|offer| *offer == best) {
        return at;
    }
    let is_kin = |offer: &Offer| {
        offer.model == best.model
            && offer.samples == best.samples
            && offer.escalate.is_some() == best.escalate.is_some()
    };
    let next = offers.iter().position(|offer| is_kin(offer) && offer.thinking >= best.thinking);
    let last = offers.iter().rposition(is_kin).map_or(offers.len(), |last| last + 1);
    let at = next.unwrap_or(last);
    offers.insert(at, best);
    at
}
