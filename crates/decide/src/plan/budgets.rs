//! Which thinking budgets a model is offered with: the stated one, the effort's, or a grid to choose from.

use stint_types::catalog::{EnforcementClass, ModelDemand, Service, WorstCase};
use stint_types::chat::{MemberNames, ReasoningEffort};
use stint_types::units::{Effort, Tokens};

use super::bounds::{ThinkingCeiling, TokenBounds};
use super::reason::BudgetReason;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::spend_caps::SpendCaps;
use super::terms::{ModelTerms, usual_at};

/// No more budgets than this are priced on one model before the best is refined.
const GRID_MAX: usize = 12;

/// Budgets to price on one model, in rising order, none beyond the ceiling.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThinkingBudgets<'a> {
    each: [Tokens; GRID_MAX],
    count: usize,
    /// What the last of them is limited by.
    pub ceiling: ThinkingCeiling<'a>,
    /// True if caller or effort leave no choice.
    pub fixed: bool,
}

impl<'a> ThinkingBudgets<'a> {
    /// The budgets of a model. Stated and effort leave one; of several, the least wins. What does not fit
    /// the caller's own caps is lowered to what does. What does not fit the allowance is lowered too,
    /// except beside a stated thinking budget: that is refused.
    pub(super) fn of(
        request: &PlanRequest<'a>,
        terms: &ModelTerms,
        bounds: &TokenBounds<'a>,
        whole: &SpendCaps<'a>,
    ) -> Result<ThinkingBudgets<'a>, PlanRefusal> {
        let (mut ceiling, members) = (bounds.thinking, &request.budget.members);
        if let Some(stated) = &request.budget.reasoning_effort {
            ceiling.apply_effort(stated, members, terms);
        }
        if let Some(stated) = request.budget.thinking {
            // Nobody states it of a text: it is said for all of them.
            let is_text = request.needs.service == Service::Completions;
            ceiling.lower_or_keep(
                stated,
                if is_text { BudgetReason::Text } else { BudgetReason::Stated(members.thinking) },
            );
        }
        ceiling.note_no_effect(request, terms);
        let planned = request.budget.thinking.is_none();
        lower_to_caps(&mut ceiling, &SpendCaps::stated(request), planned, terms, bounds)?;
        if request.budget.thinking.is_some() {
            whole.check(worst_case(terms, bounds, ceiling.most, bounds.least))?;
        }
        lower_to_caps(&mut ceiling, whole, planned, terms, bounds)?;
        ceiling.apply_provider_minimum(terms, members)?;
        let fixed = request.budget.thinking.is_some() || request.budget.reasoning_effort.is_some();
        let mut budgets = ThinkingBudgets { each: [ceiling.most; GRID_MAX], count: 1, ceiling, fixed };
        // Below no thought at all there is nothing to choose from.
        if !fixed && ceiling.most > Tokens::ZERO {
            budgets.add_grid(terms);
        }
        Ok(budgets)
    }

    /// The budgets, in rising order.
    pub(super) fn as_slice(&self) -> &[Tokens] {
        &self.each[..self.count]
    }

    /// The budgets, and behind them others that fill the row.
    pub(super) fn padded(&self) -> &[Tokens; GRID_MAX] {
        &self.each
    }

    /// The budgets next to one, below and above; itself where there is none.
    pub(super) fn neighbors(&self, t: Tokens) -> (Tokens, Tokens) {
        let below = self.as_slice().iter().rfind(|other| **other < t);
        let above = self.as_slice().iter().find(|other| **other > t);
        (below.copied().unwrap_or(t), above.copied().unwrap_or(t))
    }

    /// Budgets to choose from: none, all that is possible, and between them the levels of the scale where only words are sent,
    /// else some that are log-spaced by what is usual.
    fn add_grid(&mut self, terms: &ModelTerms) {
        self.add(Tokens::ZERO, terms);
        if terms.is_held_by_words() {
            let levels = &terms.model.efforts;
            levels.iter().for_each(|level| self.add(usual_at(level, terms.model, terms.demand), terms));
        } else {
            self.add_log_spaced(terms);
        }
        self.each[..self.count].sort_unstable();
    }

    /// Far below the median, and from 1½ standard deviations of the length's logarithm below it to 2½ above it.
    fn add_log_spaced(&mut self, terms: &ModelTerms) {
        let thinking = &terms.demand.thinking;
        let (median, half) = (thinking.median(), (thinking.sigma / 2.0).exp());
        let below = half * half.sqrt();
        let usual = [1.0, half, half.powi(2), half.powi(3), half.powi(4), half.powi(5)];
        let less = [below.powi(2), below, 4.0 * below.powi(2), 16.0 * below.powi(2)];
        usual.iter().for_each(|times| self.add(Tokens::round(median * times), terms));
        less.iter().for_each(|part| self.add(Tokens::round(median / part), terms));
    }

    fn add(&mut self, t: Tokens, terms: &ModelTerms) {
        // What is less than its least word is the same call.
        let possible = t < self.ceiling.most && terms.allows(t) && t >= terms.least_word();
        if possible && self.count < GRID_MAX && !self.as_slice().contains(&t) {
            self.each[self.count] = t;
            self.count += 1;
        }
    }
}

/// The budget of an effort: below 1 the least t with `E[min(L, t)] ≥ effort·E[L]`, though never beyond P99, so
/// that it joins what holds from 1 on, effort × P99. That more effort never yields less holds for the search too, whatever the rounding:
/// two searches take the same steps until the smaller target goes left.
pub(super) fn effort_budget(demand: &ModelDemand, effort: Effort) -> Tokens {
    let (thinking, longest) = (&demand.thinking, demand.thinking_p99().ceil());
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

impl<'a> ThinkingCeiling<'a> {
    /// A ceiling below the least thought that the provider takes is no thought, where the model can do without. Where its thought
    /// is hidden, one limit holds thought and answer, and leaving neither any room is its caller's to choose.
    fn apply_provider_minimum(
        &mut self,
        terms: &ModelTerms,
        members: &MemberNames,
    ) -> Result<(), PlanRefusal> {
        let is_shared = terms.class == EnforcementClass::Effort && matches!(self.by, BudgetReason::Total(_));
        if terms.allows(self.most) || is_shared {
            return Ok(());
        }
        let member = self.by.member().unwrap_or(members.thinking);
        *self = ThinkingCeiling { most: Tokens::ZERO, by: BudgetReason::Least };
        let needed = terms.model.thinking_min;
        if terms.allows(self.most) { Ok(()) } else { Err(PlanRefusal::AlwaysThinks { needed, member }) }
    }

    /// A share of the usual thought, where that is known, and no less than the provider takes: who asks for little thought asks for
    /// some. Of a model that always thinks, who asks for none gets the least. Else a word says nothing of tokens, and cuts nothing.
    fn apply_effort(&mut self, stated: &ReasoningEffort, members: &MemberNames, terms: &ModelTerms) {
        let is_none = stated.effort.get() <= 0.0 || terms.sends_no_thought(stated);
        if is_none && !terms.can_skip_thought() {
            return self
                .lower_or_keep(terms.least_thought(), BudgetReason::LeastEffort(members.reasoning_effort));
        }
        if is_none || terms.hides_thoughts() || terms.has_known_thinking() {
            let share = || effort_budget(terms.demand, stated.effort).max(terms.model.thinking_min);
            let budget = if is_none { Tokens::ZERO } else { share() };
            return self.lower_or_keep(budget, BudgetReason::Effort(members.reasoning_effort));
        }
        if self.by == BudgetReason::Provider && self.most > Tokens::ZERO {
            self.by = BudgetReason::Unknown(members.reasoning_effort);
        }
    }

    /// Notes that a stated thought has no effect on a model that is not known to think.
    fn note_no_effect(&mut self, request: &PlanRequest, terms: &ModelTerms) {
        let members = &request.budget.members;
        let stated = request.budget.thinking.map(|_| members.thinking);
        let stated = stated.or(request.budget.reasoning_effort.as_ref().map(|_| members.reasoning_effort));
        let is_idle = self.by == BudgetReason::Provider && terms.model.thinking_max == Tokens::ZERO;
        if let Some(member) = stated.filter(|_| is_idle) {
            self.by = BudgetReason::NoThinking(member);
        }
    }

    /// Lowers it to `most`, and names `by` as what decided where that is as low as anything.
    fn lower_or_keep(&mut self, most: Tokens, by: BudgetReason<'a>) {
        if most <= self.most {
            *self = ThinkingCeiling { most, by };
        }
    }
}

/// Lowers a ceiling to what the caps leave; refuses where it does not even hold an answer alone. Beside a planned thought the
/// answer keeps what it hardly exceeds, though of the money no more than half.
fn lower_to_caps<'a>(
    ceiling: &mut ThinkingCeiling<'a>,
    caps: &SpendCaps<'a>,
    planned: bool,
    terms: &ModelTerms,
    bounds: &TokenBounds,
) -> Result<(), PlanRefusal> {
    let first = terms.thinking_min().min(ceiling.most);
    let mut kept = bounds.least;
    if caps.is_unlimited() {
        return Ok(());
    }
    if planned && !caps.fits(worst_case(terms, bounds, ceiling.most, bounds.likely_max)) {
        let half = caps.halved();
        kept = largest_fitting(bounds.least, bounds.likely_max, |s| {
            half.fits(worst_case(terms, bounds, first, s))
        });
    }
    if caps.fits(worst_case(terms, bounds, ceiling.most, kept)) {
        return Ok(());
    }
    caps.check(worst_case(terms, bounds, first, bounds.least))?;
    let most = largest_fitting(first, ceiling.most, |t| caps.fits(worst_case(terms, bounds, t, kept)));
    // Of several caps the tightest is named: the one that the next token does not fit under.
    if let Some(by) = caps.reason(worst_case(terms, bounds, most + Tokens(1), kept)) {
        *ceiling = ThinkingCeiling { most, by };
    }
    Ok(())
}

/// The worst case of a thinking budget with an answer of `s`, as far as there is room for it.
pub(super) fn worst_case(terms: &ModelTerms, bounds: &TokenBounds, t: Tokens, s: Tokens) -> WorstCase {
    terms.worst_case(t, s.min(bounds.headroom(terms, t).most))
}

/// The largest count from `low` to `high` that fits, by bisection, given that `low` does.
pub(super) fn largest_fitting(low: Tokens, high: Tokens, fits: impl Fn(Tokens) -> bool) -> Tokens {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::demand;
    use proptest::prelude::*;
    use stint_types::catalog::LogNormal;

    fn check(effort: f64, mu: f64, sigma: f64) -> Tokens {
        let demand = ModelDemand { thinking: LogNormal { mu, sigma }, ..demand(mu, 0.1, 0.9) };
        effort_budget(&demand, Effort::try_from(effort).unwrap())
    }

    #[test]
    fn effort_is_a_share_of_the_usual_thinking() {
        let length = LogNormal { mu: 6.0, sigma: 0.8 };
        for effort in [0.1, 0.25, 0.5, 0.9] {
            let spent = length.mean_within(check(effort, 6.0, 0.8).as_f64()) / length.mean();
            assert!((spent - effort).abs() < 0.005, "{effort} spends {spent}");
        }
        assert_eq!(check(0.0, 6.0, 0.8), Tokens::ZERO);
        assert_eq!(check(1.0, 6.0, 0.8), Tokens::round(length.quantile(2.326_347_874_040_840_8).ceil()));
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
