//! Which thinking budgets a model is offered with: the stated one, the effort's, or a grid to choose from.

use crate::catalog::{Class, LogNormal, WorstCase};
use crate::units::{Effort, Tokens};

use super::bounds::{Bounds, Ceiling};
use super::purse::Purse;
use super::terms::Terms;
use super::why::Reason;
use super::{Ask, Refusal};

/// Budgets to price on one model, in rising order, none beyond the ceiling.
#[derive(Debug)]
pub(super) struct Budgets {
    /// The budgets.
    pub each: Vec<Tokens>,
    /// What the last of them is limited by.
    pub ceiling: Ceiling,
}

impl Budgets {
    /// The budgets of a model. Stated and effort leave one; of several, the least wins. What does not fit
    /// the caller's own caps is lowered to what does. What does not fit the allowance is lowered too,
    /// except beside a stated thinking budget: that is refused.
    pub(super) fn of(ask: &Ask, terms: &Terms, bounds: &Bounds) -> Result<Budgets, Refusal> {
        let mut ceiling = bounds.thinking.clone();
        if let Some(depth) = &ask.budget.depth {
            ceiling.lower_or_keep(effort_budget(&terms.demand.thinking, depth.effort), Reason::Effort);
        }
        if let Some(stated) = ask.budget.thinking {
            ceiling.lower_or_keep(stated, Reason::Stated);
        }
        let whole = Purse::whole(ask, &terms.model.name);
        lower_to(&mut ceiling, &Purse::stated(ask), terms, bounds)?;
        if ask.budget.thinking.is_some() {
            whole.check(least(terms, bounds, ceiling.most))?;
        }
        lower_to(&mut ceiling, &whole, terms, bounds)?;
        ceiling.respect_least(terms)?;
        let fixed = ask.budget.thinking.is_some() || ask.budget.depth.is_some();
        let each = if fixed { vec![ceiling.most] } else { grid(terms, ceiling.most) };
        Ok(Budgets { each, ceiling })
    }
}

/// The answer's budget beside a thinking budget of `t`: as much as there is room and money for.
pub(super) fn solution(terms: &Terms, bounds: &Bounds, purse: &Purse, t: Tokens) -> Tokens {
    let most = bounds.solution(terms, t);
    largest(bounds.kept.min(most), most, |s| purse.holds(terms.worst(t, s)))
}

/// The budget of an effort: below 1 the least t with `E[min(L, t)] ≥ effort·E[L]`, though never beyond P99, so
/// that it joins what holds from 1 on, effort × P99. That more effort never yields less holds for the search too, whatever the rounding:
/// two searches take the same steps until the smaller target goes left.
pub(super) fn effort_budget(thinking: &LogNormal, effort: Effort) -> Tokens {
    let longest = thinking.p99().ceil();
    if effort.get() >= 1.0 {
        return Tokens::round((effort.get() * longest).ceil());
    }
    let wanted = effort.get() * thinking.mean();
    let (mut low, mut high) = (0, Tokens::round(longest).0);
    while low < high {
        let middle = low + (high - low) / 2;
        if thinking.mean_within(Tokens(middle).as_f64()) >= wanted {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Tokens(low)
}

impl Ceiling {
    /// A ceiling below the least thought that the provider takes is no thought, where the model can do without.
    fn respect_least(&mut self, terms: &Terms) -> Result<(), Refusal> {
        if terms.allows(self.most) {
            return Ok(());
        }
        *self = Ceiling { most: Tokens::ZERO, by: Reason::Least };
        let needed = terms.model.thinking_min;
        if terms.allows(self.most) { Ok(()) } else { Err(Refusal::AlwaysThinks { needed }) }
    }

    /// Lowers it to `most`, and names `by` as what decided where that is as low as anything.
    fn lower_or_keep(&mut self, most: Tokens, by: Reason) {
        if most <= self.most {
            *self = Ceiling { most, by };
        }
    }
}

/// Lowers a ceiling to what a purse holds; refuses where it does not even hold an answer alone.
fn lower_to(ceiling: &mut Ceiling, purse: &Purse, terms: &Terms, bounds: &Bounds) -> Result<(), Refusal> {
    if purse.holds(least(terms, bounds, ceiling.most)) {
        return Ok(());
    }
    purse.check(least(terms, bounds, Tokens::ZERO))?;
    let most = largest(Tokens::ZERO, ceiling.most, |t| purse.holds(least(terms, bounds, t)));
    // Of several caps the tightest is named: the one that the next token does not fit under.
    if let Some(by) = purse.reason(least(terms, bounds, most + Tokens(1))) {
        *ceiling = Ceiling { most, by };
    }
    Ok(())
}

/// The worst case of a thinking budget with the least budget for the answer.
fn least(terms: &Terms, bounds: &Bounds, t: Tokens) -> WorstCase {
    terms.worst(t, bounds.kept.min(bounds.solution(terms, t)))
}

/// The largest count from `low` to `high` that fits, by bisection, given that `low` does.
fn largest(low: Tokens, high: Tokens, fits: impl Fn(Tokens) -> bool) -> Tokens {
    if fits(high) {
        return high;
    }
    let (mut low, mut high) = (low.0, high.0);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(Tokens(middle)) { low = middle } else { high = middle }
    }
    Tokens(low)
}

/// Budgets to choose from: none, powers of √2, the median and the longest usual thoughts, the levels of an
/// effort scale, and all that is possible.
fn grid(terms: &Terms, most: Tokens) -> Vec<Tokens> {
    let thinking = &terms.demand.thinking;
    let powers = (0..=2 * 17).map(|k| Tokens::round(2f64.powf(f64::from(k) / 2.0)));
    let usual = [thinking.median(), thinking.p90(), thinking.p99()].map(|t| Tokens::round(t.ceil()));
    let levels = terms.model.efforts.iter().map(|level| level.usual);
    let levels = levels.filter(|_| terms.class == Class::Effort);
    let possible = |t: &Tokens| *t <= most && terms.allows(*t);
    let mut each: Vec<Tokens> =
        [Tokens::ZERO, most].into_iter().chain(powers).chain(usual).chain(levels).filter(possible).collect();
    each.sort_unstable();
    each.dedup();
    each
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(effort: f64, mu: f64, sigma: f64) -> Tokens {
        effort_budget(&LogNormal { mu, sigma }, Effort::try_from(effort).unwrap())
    }

    #[test]
    fn effort_is_a_share_of_the_usual_thinking() {
        let length = LogNormal { mu: 6.0, sigma: 0.8 };
        for effort in [0.1, 0.25, 0.5, 0.9] {
            let spent = length.mean_within(check(effort, 6.0, 0.8).as_f64()) / length.mean();
            assert!((spent - effort).abs() < 0.005, "{effort} spends {spent}");
        }
        assert_eq!(check(0.0, 6.0, 0.8), Tokens::ZERO);
        assert_eq!(check(1.0, 6.0, 0.8), Tokens::round(length.p99().ceil()));
        assert_eq!(check(2.0, 6.0, 0.8), check(1.0, 6.0, 0.8) * 2);
    }

    proptest! {
        #[test]
        fn more_effort_never_yields_a_smaller_budget(
            a in 0.0..2.5f64, b in 0.0..2.5f64, mu in 0.0..12.0f64, sigma in 0.01..2.5f64,
        ) {
            prop_assert!(check(a.min(b), mu, sigma) <= check(a.max(b), mu, sigma));
        }
    }
}
