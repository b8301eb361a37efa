//! What each model took of a request, where several did.
//!
//! A resolution has the whole, and a model of its own: the one that answered. A part is what another took of it: a draft, a
//! judge's word, the first step of a cascade, an attempt that failed. What is no part is the own model's, so all of them always
//! come to the whole. Limits count whole requests, as they are reserved.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::units::{Money, Tokens};

use super::{Amounts, ResolutionEntry, UsageSums};

/// What one model took of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelSpend {
    /// What it was charged.
    pub money: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// Prompt tokens as billed.
    pub prompt: Tokens,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// Output tokens that were not delivered, thoughts apart.
    pub other: Tokens,
}

/// Parts by model; none is of nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpendByModel(BTreeMap<Arc<str>, ModelSpend>);

impl ModelSpend {
    fn each(self, other: ModelSpend, of: impl Fn(u64, u64) -> u64) -> ModelSpend {
        let tokens = |one: Tokens, other: Tokens| Tokens(of(one.0, other.0));
        ModelSpend {
            money: Money(of(self.money.0, other.money.0)),
            thinking: tokens(self.thinking, other.thinking),
            prompt: tokens(self.prompt, other.prompt),
            overhead: tokens(self.overhead, other.overhead),
            solution: tokens(self.solution, other.solution),
            other: tokens(self.other, other.other),
        }
    }

    /// The least of each.
    #[must_use]
    pub fn min(self, other: ModelSpend) -> ModelSpend {
        self.each(other, u64::min)
    }

    /// What is left of each, zero at least.
    #[must_use]
    pub fn saturating_sub(self, other: ModelSpend) -> ModelSpend {
        self.each(other, u64::saturating_sub)
    }
}

impl AddAssign for ModelSpend {
    fn add_assign(&mut self, other: ModelSpend) {
        *self = self.each(other, u64::saturating_add);
    }
}

impl SpendByModel {
    /// Adds what a model took.
    pub fn add(&mut self, model: &Arc<str>, part: ModelSpend) {
        if part != ModelSpend::default() {
            *self.0.entry(model.clone()).or_default() += part;
        }
    }

    /// All of them, by the names of the models.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, ModelSpend)> {
        self.0.iter().map(|(model, part)| (model, *part))
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one is that model's.
    pub fn has(&self, model: &str) -> bool {
        self.0.contains_key(model)
    }

    /// What all of them come to.
    pub fn sum(&self) -> ModelSpend {
        self.0.values().fold(ModelSpend::default(), |mut sum, part| {
            sum += *part;
            sum
        })
    }

    /// Those of other models than that one, as far as they are of the whole.
    pub(super) fn without_model(self, own: Option<&Arc<str>>, mut whole: ModelSpend) -> SpendByModel {
        let mut parts = SpendByModel::default();
        for (model, part) in self.iter().filter(|(model, _)| Some(*model) != own) {
            let part = part.min(whole);
            whole = whole.saturating_sub(part);
            parts.add(model, part);
        }
        parts
    }
}

impl ResolutionEntry {
    /// All that models took of it.
    pub fn total_spend(&self) -> ModelSpend {
        let super::SettlementDetail { prompt, overhead, solution, other, .. } = self.detail;
        let Amounts { money, thinking, .. } = self.spent;
        ModelSpend { money, thinking, prompt, overhead, solution, other }
    }

    /// Of what each model took, leaves those parts that are not its own model's.
    pub(super) fn keep_other_models(&mut self) {
        let parts = std::mem::take(&mut self.detail.parts);
        self.detail.parts = parts.without_model(self.about.model.as_ref(), self.total_spend());
    }

    /// What each model took of it, its own first, to which all else is counted that is not one model's: the request
    /// itself, tool calls, what was more than the reservation.
    pub fn shares(&self) -> impl Iterator<Item = (Option<&Arc<str>>, UsageSums)> {
        let mut own = UsageSums::default();
        own.add(self);
        let parts = self.detail.parts.iter().map(|(model, part)| (Some(model), UsageSums::from(part)));
        std::iter::once((self.about.model.as_ref(), own.minus(self.detail.parts.sum()))).chain(parts)
    }
}

impl UsageSums {
    /// The same without what others took of it.
    fn minus(self, others: ModelSpend) -> UsageSums {
        let UsageSums { spent: Amounts { money, thinking, .. }, prompt, overhead, solution, other, .. } =
            self;
        let own = ModelSpend { money, thinking, prompt, overhead, solution, other }.saturating_sub(others);
        let mut sums = UsageSums::from(own);
        sums.spent = Amounts { money: own.money, thinking: own.thinking, ..self.spent };
        UsageSums { overrun: self.overrun, settled: self.settled, ..sums }
    }
}

impl From<ModelSpend> for UsageSums {
    fn from(part: ModelSpend) -> UsageSums {
        let ModelSpend { money, thinking, prompt, overhead, solution, other } = part;
        let spent = Amounts { money, thinking, ..Amounts::ZERO };
        UsageSums { spent, prompt, overhead, solution, other, ..UsageSums::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::ResolutionKind;
    use crate::ledger::conformance::{amounts, dispatched, resolved};

    fn part(money: u64, prompt: u64) -> ModelSpend {
        ModelSpend { money: Money(money), prompt: Tokens(prompt), ..ModelSpend::default() }
    }

    fn parts(of: &[(&str, ModelSpend)]) -> SpendByModel {
        let mut parts = SpendByModel::default();
        of.iter().for_each(|(model, part)| parts.add(&Arc::from(*model), *part));
        parts
    }

    #[test]
    fn a_part_of_nothing_is_none_and_two_of_one_model_are_one() {
        assert_eq!(parts(&[("a", ModelSpend::default())]), SpendByModel::default());
        let sum = parts(&[("a", part(1, 2)), ("b", part(5, 5)), ("a", part(3, 0))]);
        assert_eq!(sum, parts(&[("b", part(5, 5)), ("a", part(4, 2))]));
        assert_eq!(sum.sum(), part(9, 7));
    }

    #[test]
    fn what_is_left_is_the_own_models() {
        let all = parts(&[("a", part(10, 3)), ("b", part(20, 3)), ("own", part(30, 3))]);
        let own: Arc<str> = "own".into();
        let beside = |money, prompt| all.clone().without_model(Some(&own), part(money, prompt));
        assert_eq!(beside(60, 9), parts(&[("a", part(10, 3)), ("b", part(20, 3))]));
        assert_eq!(beside(15, 9), parts(&[("a", part(10, 3)), ("b", part(5, 3))]), "never more than all");
        assert_eq!(beside(0, 0), SpendByModel::default());
        assert_eq!(
            parts(&[("own", part(30, 3))]).without_model(Some(&own), part(60, 9)),
            SpendByModel::default()
        );
    }

    #[test]
    fn shares_come_to_the_whole() {
        let row = dispatched("a", 1, amounts(50, 6));
        let mut end = resolved(&row, ResolutionKind::Settled, amounts(60, 5));
        end.detail.parts = parts(&[("judge", part(7, 30)), ("draft", part(2, 1))]);
        let (mut whole, mut sum) = (UsageSums::default(), UsageSums::default());
        whole.add(&end);
        let shares: Vec<_> = end.shares().collect();
        shares.iter().for_each(|(_, share)| sum += *share);
        assert_eq!(sum, whole);
        let money: Vec<_> =
            shares.iter().map(|(model, share)| (model.unwrap().as_ref(), share.spent.money.0)).collect();
        assert_eq!(money, [("reasoner", 51), ("draft", 2), ("judge", 7)]);
        assert_eq!((shares[0].1.settled, shares[1].1.settled, shares[0].1.prompt), (1, 0, Tokens(9)));
    }
}
