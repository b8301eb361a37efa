//! `UsageSums`: what requests were charged, summed up; and how one request's charge is shared between several models.

use std::ops::AddAssign;
use std::sync::Arc;

use stint_types::units::{Money, Tokens};

use super::amounts::Amounts;
use super::entry::{ResolutionEntry, ResolutionKind, SettlementDetail};
use super::model_spend::ModelSpend;

/// What some requests were charged, and what for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// What they were charged.
    pub spent: Amounts,
    /// What of that was more money than reserved.
    pub overrun: Money,
    /// How many were settled; neither voided nor expired.
    pub settled: u64,
    /// Prompt tokens as billed.
    pub prompt: Tokens,
    /// Tags, hand-offs and ends of text.
    pub overhead: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// Output tokens that were not delivered, thoughts apart.
    pub other: Tokens,
}

impl UsageSums {
    /// Adds what one request was charged.
    pub fn add(&mut self, row: &ResolutionEntry) {
        let settled = u64::from(row.how == ResolutionKind::Settled);
        let all = UsageSums::from(row.total_spend());
        *self += UsageSums { spent: row.spent, overrun: row.overrun.money, settled, ..all };
    }

    /// The same without what other models took of it.
    fn minus(self, others: ModelSpend) -> UsageSums {
        let UsageSums { spent: Amounts { money, thinking, .. }, prompt, overhead, solution, other, .. } =
            self;
        let own = ModelSpend { money, thinking, prompt, overhead, solution, other }.saturating_sub(others);
        let spent = Amounts { money: own.money, thinking: own.thinking, ..self.spent };
        UsageSums { spent, overrun: self.overrun, settled: self.settled, ..UsageSums::from(own) }
    }
}

impl AddAssign for UsageSums {
    fn add_assign(&mut self, other: UsageSums) {
        self.spent += other.spent;
        self.overrun += other.overrun;
        self.settled += other.settled;
        self.prompt += other.prompt;
        self.overhead += other.overhead;
        self.solution += other.solution;
        self.other += other.other;
    }
}

impl ResolutionEntry {
    /// All that models took of it.
    pub fn total_spend(&self) -> ModelSpend {
        let SettlementDetail { prompt, overhead, solution, other, .. } = self.detail;
        let Amounts { money, thinking, .. } = self.spent;
        ModelSpend { money, thinking, prompt, overhead, solution, other }
    }

    /// Of what each model took, leaves those parts that are not its own model's.
    pub(crate) fn keep_other_models(&mut self) {
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
    use crate::conformance::{amounts, dispatched, resolved};

    #[test]
    fn shares_come_to_the_whole() {
        let row = dispatched("a", 1, amounts(50, 6));
        let mut end = resolved(&row, ResolutionKind::Settled, amounts(60, 5));
        for (model, money, prompt) in [("judge", 7, 30), ("draft", 2, 1)] {
            let part = ModelSpend { money: Money(money), prompt: Tokens(prompt), ..ModelSpend::default() };
            end.detail.parts.add(&model.into(), part);
        }
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
