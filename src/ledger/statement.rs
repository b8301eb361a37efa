//! How an account stands, for those who ask.

use crate::catalog::{Allowance, Left};
use crate::units::{Amount, Limit, Money, Timestamp};

use super::{AccountId, Amounts};

/// How one limit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The least of what these limits leave.
pub(super) fn tightest(lines: &[Line]) -> Allowance {
    let mut allowance = Allowance::default();
    for line in lines {
        match line.left {
            Amount::Money(amount) => tighten(&mut allowance.money, line, amount),
            Amount::Thinking(amount) => tighten(&mut allowance.thinking, line, amount),
        }
    }
    allowance
}

fn tighten<T: Ord>(least: &mut Option<Left<T>>, line: &Line, amount: T) {
    if least.as_ref().is_none_or(|least| amount < least.amount) {
        *least = Some(Left { limit: line.limit, amount, resets_at: line.resets_at });
    }
}
