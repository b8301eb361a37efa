//! What a run keeps of its money for its last answer.

use crate::units::Money;

use super::Ask;
use super::board::{Serving, servings};
use super::budgets::least;

/// What an answer costs at most by the cheapest model, with the shortest thought that it can have: as long as answers hardly ever
/// are where that is at most `fair`, else as much as that, and at least a usual one. Nothing where no model can serve.
pub fn answer_cost(ask: &Ask, fair: Money) -> Option<Money> {
    let cost = |serving: &Serving| {
        let Serving { terms, bounds, budgets, .. } = serving;
        let thought = budgets.each().first().copied().unwrap_or(budgets.ceiling.most);
        let worst = |answer| least(terms, bounds, (thought, answer)).money;
        worst(bounds.ample).min(fair).max(worst(bounds.least))
    };
    servings(ask, |_, _| ()).iter().map(cost).min()
}
