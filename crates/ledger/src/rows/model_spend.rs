//! What each model took of a request that several models worked on.
//!
//! A resolution names the model that answered, and has the whole charge. A part is what another model took of it: a
//! draft, a judge's verdict, the first step of a cascade, a failed attempt. What is in no part belongs to the model that
//! answered, so that all shares add up to the whole. Limits count whole requests, as they are reserved.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use stint_types::units::{Money, Tokens};

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
    /// With no more than that of each model.
    #[must_use]
    pub(crate) fn within(self, most: ModelSpend) -> SpendByModel {
        SpendByModel(self.0.into_iter().map(|(model, part)| (model, part.min(most))).collect())
    }

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

    /// True if there are none.
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
    pub(crate) fn without_model(self, own: Option<&Arc<str>>, mut whole: ModelSpend) -> SpendByModel {
        let mut parts = SpendByModel::default();
        for (model, part) in self.iter().filter(|(model, _)| Some(*model) != own) {
            let part = part.min(whole);
            whole = whole.saturating_sub(part);
            parts.add(model, part);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
