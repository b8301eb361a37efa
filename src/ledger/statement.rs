//! How an account stands, for those who ask.

use crate::catalog::{Allowance, Left};
use crate::units::{Amount, Facet, Limit, Money, Timestamp};

use super::{About, AccountId, Amounts};

/// How one limit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which limit it is.
    pub limit: Limit,
    /// The most that may be spent.
    pub max: Amount,
    /// What was spent in this window.
    pub spent: Amount,
    /// What is set aside.
    pub reserved: Amount,
    /// What may still be reserved.
    pub left: Amount,
    /// When counting starts anew; never, for a limit on all time.
    pub resets_at: Option<Timestamp>,
}

/// One account over all time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Whose.
    pub account: AccountId,
    /// What it spent.
    pub spent: Amounts,
    /// What is set aside for it now.
    pub reserved: Amounts,
    /// What it was billed beyond its reservations.
    pub overrun: Money,
    /// How many of its requests were settled.
    pub settled: u64,
}

/// The least of what these limits leave to requests about this; what they leave to one model, by model.
pub(super) fn tightest(lines: Vec<Line>, about: &About) -> Allowance {
    let mut allowance = Allowance::default();
    for line in lines {
        let purse = match &line.limit.facet {
            Facet::Model(name) => allowance.models.entry(name.clone()).or_default(),
            Facet::Tag(tag) if about.tag.as_ref() != Some(tag) => continue,
            _ => &mut allowance.purse,
        };
        match line.left {
            Amount::Money(amount) => tighten(&mut purse.money, line, amount),
            Amount::Thinking(amount) => tighten(&mut purse.thinking, line, amount),
            // The plan cannot ask for less of these; the reservation refuses them.
            Amount::Requests(_) | Amount::ToolCalls(_) | Amount::Concurrency(_) => {}
        }
    }
    allowance
}

fn tighten<T: Ord>(least: &mut Option<Left<T>>, line: Line, amount: T) {
    if least.as_ref().is_none_or(|least| amount < least.amount) {
        *least = Some(Left { limit: line.limit, amount, resets_at: line.resets_at });
    }
}
