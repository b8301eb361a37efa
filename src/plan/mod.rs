//! What a request's thinking is worth, and who does it: demand × market × allowance → offers, best first.
//!
//! Pure. For each model that can serve the request, a few thinking budgets are priced by the formulas in
//! `terms`, then votes and cascades of them, where the route has them, in the same terms (`board`); what cannot be
//! reserved is never offered; `frontier` takes the best, and `refine` finds the budget near it at which more thinking
//! stops to pay. Where a route explores, the model is drawn (`explore`). A plan reserves nothing itself. A quote shows
//! all that was priced.

mod answer;
mod board;
mod bounds;
mod budgets;
mod explore;
mod frontier;
mod kept;
mod offer;
mod purse;
mod quote;
mod refine;
mod refusal;
mod terms;
#[cfg(test)]
mod tests;
mod why;

use crate::catalog::{Allowance, Demand, Market, Model, Needs, Plan, Route};
use crate::chat::Budget;
use crate::units::{Chance, Tokens};

pub use kept::answer_cost;
pub use quote::{Quote, quote};
pub use refusal::{NotTaken, Refusal};

use board::{Board, Candidate};
use explore::{Lot, Stand};
use frontier::{Aim, Cell, Scratch, sorted};
use offer::offer;
use why::{Found, Reason};

/// How many models are kept as fallbacks.
pub const FALLBACKS_MAX: usize = 3;

/// Which way of choosing this is, for those who judge decisions afterwards; another one has another name.
pub const POLICY: &str = "value-1";

/// What share of answers a first reservation covers where the operator says nothing of it.
pub const OPENING_QUANTILE: f64 = 0.99;

/// All that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// How hard the request is.
    pub demand: &'a Demand,
    /// The models that the route may choose; of equals the first is taken.
    pub models: &'a [&'a Model],
    /// What success and time are worth.
    pub route: &'a Route,
    /// What things cost now.
    pub market: &'a Market,
    /// What the caller may still spend.
    pub allowance: &'a Allowance,
    /// What the caller stated.
    pub budget: &'a Budget,
    /// What the model must be able to do.
    pub needs: &'a Needs,
    /// How many answers are wanted.
    pub choices: u32,
    /// True where the caller is sent the answer as it is written, which one that is still to be chosen cannot be.
    pub streams: bool,
    /// The model that the episode is with, if it is with one.
    pub sticky: Option<Sticky<'a>>,
    /// Where a model is to be drawn rather than taken by its mean.
    pub explore: Option<Explore>,
    /// What share of answers the first reservation of one is to cover, where money is limited.
    pub opening_quantile: Chance,
}

/// The model that the last turns of an episode were served by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sticky<'a> {
    /// Its name.
    pub model: &'a str,
    /// How much of the prompt its provider still has in its cache: any other model reads that anew, at its full price.
    pub cached: Tokens,
    /// Whether something went wrong with it (errors, stalls, failed checks): without that no dearer model is offered.
    pub evidence: bool,
}

/// How a model is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explore {
    /// What the draw is made from: of equal seeds, equal draws.
    pub seed: u64,
    /// The share of requests that are spread evenly over all models.
    pub floor: Chance,
}

/// What was taken of a board.
struct Taken<'a> {
    /// The best candidate, then the best of each model not named before.
    ranked: Vec<(Candidate, Reason<'a>)>,
    stands: Vec<Stand>,
    found: Found,
    propensity: f64,
}

/// Plans a request.
///
/// # Errors
/// When no model can serve it within its budgets; of several models' refusals, the one that came nearest.
pub fn plan(ask: &Ask) -> Result<Plan, Refusal> {
    let mut nearest = None;
    let board = Board::of(ask, |_, refusal| nearer(&mut nearest, refusal));
    let taken = take(ask, &board).ok_or_else(|| nearest.unwrap_or(Refusal::Unhealthy))?;
    let mut offers = taken.ranked.iter().map(|(candidate, reason)| offer(ask, &board, candidate, *reason));
    let best = offers.next().ok_or(Refusal::Unhealthy)?;
    let fallbacks: Vec<_> = offers.collect();
    let why = why::why(ask, (&best, board.reasons(&taken.ranked[0])), taken.found, fallbacks.first());
    let contenders = taken.stands.iter().map(|stand| offer::contender(ask, &board, stand)).collect();
    Ok(Plan { best, fallbacks, propensity: taken.propensity, contenders, why })
}

/// Keeps the refusal that came nearest to an offer; of equals the first.
fn nearer(nearest: &mut Option<Refusal>, refusal: Refusal) {
    if nearest.as_ref().is_none_or(|known| refusal.nearness() > known.nearness()) {
        *nearest = Some(refusal);
    }
}

/// The best candidate, by worth or by a draw, and the best of the models next to it. Nothing, where there is no candidate.
fn take<'a>(ask: &Ask, board: &Board<'a>) -> Option<Taken<'a>> {
    let aim = Aim::of(ask);
    let mut scratch = Scratch::default();
    let mut stands = explore::stands(board, &aim);
    let Lot { uncapped, drawn } = explore::lot(ask, board, &mut stands, &aim);
    let (best, cell) = match drawn {
        Some(drawn) => (stands.get(drawn)?.best, Cell::WHOLE),
        None => chosen(board, &stands, &aim, &mut scratch)?,
    };
    let first = best.serving;
    let mut ranked = Vec::with_capacity(1 + FALLBACKS_MAX);
    ranked.push(best);
    while let (true, Some(next)) = (ranked.len() <= FALLBACKS_MAX, next(&stands, &ranked, &aim)) {
        ranked.push(next);
    }
    ranked[0] = refine::refined(ask, board, (best, cell), &aim, &mut scratch);
    let mut ranked: Vec<(Candidate, Reason)> =
        ranked.into_iter().map(|best| (best, board.reason(&best))).collect();
    if let Some(longest) = uncapped.then(|| board.longest(ask, first)).flatten() {
        ranked[0] = (longest, Reason::Uncapped);
    }
    let stand = stands.iter_mut().find(|stand| stand.best.serving == first)?;
    stand.best = ranked[0].0;
    if drawn.is_none() {
        stand.propensity = 1.0;
    }
    let (propensity, found) = (stand.propensity, if drawn.is_some() { Found::Drawn } else { Found::Valued });
    Some(Taken { ranked, stands, found, propensity })
}

/// The best of all, by worth.
fn chosen(board: &Board, stands: &[Stand], aim: &Aim, scratch: &mut Scratch) -> Option<(Candidate, Cell)> {
    if aim.floor.is_none() {
        let best = aim.best(stands.iter().map(|stand| (stand.best.success, stand.best.burden)))?;
        return Some((stands[best].best, Cell::WHOLE));
    }
    let mut order: Vec<usize> = (0..board.candidates.len()).collect();
    sorted(&board.candidates, &mut order);
    let choice = scratch.choose(&board.candidates, &order, aim, Cell::WHOLE)?;
    Some((board.candidates[choice.at], choice.cell))
}

/// The best of the models that are not ranked yet.
fn next(stands: &[Stand], ranked: &[Candidate], aim: &Aim) -> Option<Candidate> {
    let is_left = |stand: &&Stand| ranked.iter().all(|one| one.serving != stand.best.serving);
    let best =
        aim.best(stands.iter().filter(is_left).map(|stand| (stand.best.success, stand.best.burden)))?;
    stands.iter().filter(is_left).nth(best).map(|stand| stand.best)
}
