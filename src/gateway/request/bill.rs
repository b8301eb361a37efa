//! What the calls of a request took, as it is booked: for the offer that was delivered, and for offers that were given up.

use std::sync::Arc;

use stint_ledger::{ModelSpend, SettlementDetail, SpendByModel};
use stint_types::catalog::ChoiceUsage;
use stint_types::units::{Money, Tokens};

/// What one run took, and of which model.
#[derive(Clone, Copy)]
pub(crate) struct Bill<'s> {
    pub(crate) model: &'s Arc<str>,
    pub(crate) cost: Money,
    pub(crate) spent: &'s [ChoiceUsage],
}

/// What offers took that were given up for the next one, and calls beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct UndeliveredSpend {
    pub(super) attempts: u32,
    /// How many of them were dropped, or failed, while another ran in parallel.
    pub(super) hedge_losers: u32,
    /// True if some of it was reckoned.
    pub(super) is_estimated: bool,
    /// Of each model.
    pub(super) parts: SpendByModel,
}

impl Bill<'_> {
    /// All of it, where none of it is delivered.
    pub(super) fn undelivered(&self) -> ModelSpend {
        ModelSpend {
            money: self.cost,
            thinking: thinking_tokens(self.spent),
            prompt: self.spent.iter().map(ChoiceUsage::input).sum(),
            other: self.spent.iter().map(non_thinking_tokens).sum(),
            ..ModelSpend::default()
        }
    }

    /// All of it and what its tool calls cost, where it is delivered and sorted like that.
    pub(super) fn delivered(&self, detail: &SettlementDetail) -> ModelSpend {
        let SettlementDetail { prompt, overhead, solution, other, tools_cost, .. } = *detail;
        ModelSpend {
            money: self.cost + tools_cost,
            thinking: thinking_tokens(self.spent),
            prompt,
            overhead,
            solution,
            other,
        }
    }
}

impl UndeliveredSpend {
    /// This and what another run took.
    pub(super) fn plus(mut self, bill: Bill<'_>) -> UndeliveredSpend {
        self.take(bill);
        self
    }

    pub(super) fn take(&mut self, bill: Bill<'_>) {
        self.parts.add(bill.model, bill.undelivered());
        self.is_estimated |= bill.spent.iter().any(|spent| spent.estimated);
    }

    /// The same, where that run was an attempt that was given up.
    pub(super) fn plus_failed(self, bill: Bill<'_>) -> UndeliveredSpend {
        UndeliveredSpend { attempts: self.attempts + calls(bill.spent), ..self.plus(bill) }
    }

    /// What all of it comes to.
    pub(super) fn sum(&self) -> ModelSpend {
        self.parts.sum()
    }
}

pub(super) fn calls(spent: &[ChoiceUsage]) -> u32 {
    u32::try_from(spent.len()).unwrap_or(u32::MAX)
}

pub(super) fn thinking_tokens(spent: &[ChoiceUsage]) -> Tokens {
    spent.iter().map(ChoiceUsage::thinking_total).sum()
}

/// What was written, delivered or not, that was no thought.
fn non_thinking_tokens(spent: &ChoiceUsage) -> Tokens {
    (spent.completion() + spent.undelivered).saturating_sub(spent.thinking_total())
}

/// The settlement detail for the ledger, sorted by purpose.
pub(crate) fn settlement_detail(spent: &[ChoiceUsage], outcome: &'static str) -> SettlementDetail {
    let sum = |count: fn(&ChoiceUsage) -> Tokens| spent.iter().map(count).sum();
    SettlementDetail {
        prompt: sum(ChoiceUsage::input),
        overhead: sum(|spent| spent.overhead),
        solution: sum(|spent| spent.solution),
        other: sum(|spent| spent.undelivered.saturating_sub(spent.undelivered_thinking)),
        outcome: outcome.into(),
        ..SettlementDetail::default()
    }
}
