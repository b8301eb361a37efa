//! The status of limits and accounts, and what is left under the tightest limits.

use crate::rows::{Amounts, RequestScope};
use stint_types::catalog::{Allowance, RemainingQuota};
use stint_types::units::{AccountId, Amount, Facet, Limit, Money, Timestamp};

/// How one limit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitStatus {
    /// Which limit it is.
    pub limit: Limit,
    /// The most that may be spent.
    pub max: Amount,
    /// What was spent in this window.
    pub spent: Amount,
    /// What is reserved.
    pub reserved: Amount,
    /// What may still be reserved.
    pub left: Amount,
    /// When counting starts again; never, for a limit on all time.
    pub resets_at: Option<Timestamp>,
}

/// One account over all time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTotals {
    /// Whose.
    pub account: AccountId,
    /// What it spent.
    pub spent: Amounts,
    /// What is reserved for it now.
    pub reserved: Amounts,
    /// What it was billed beyond its reservations.
    pub overrun: Money,
    /// How many of its requests were settled.
    pub settled: u64,
}

/// The least that these limits leave to requests of this scope, in all and by model.
pub(crate) fn tightest(statuses: Vec<LimitStatus>, about: &RequestScope) -> Allowance {
    let mut allowance = Allowance::default();
    for status in statuses {
        let remaining = match &status.limit.facet {
            Facet::Model(name) => allowance.models.entry(name.clone()).or_default(),
            Facet::Tag(tag) if about.tag.as_ref() != Some(tag) => continue,
            _ => &mut allowance.overall,
        };
        match status.left {
            Amount::Money(amount) => tighten(&mut remaining.money, status, amount),
            Amount::Thinking(amount) => tighten(&mut remaining.thinking, status, amount),
            // The plan cannot ask for less of these; the reservation refuses them.
            Amount::Requests(_) | Amount::ToolCalls(_) | Amount::Concurrency(_) => {}
        }
    }
    allowance
}

fn tighten<T: Ord>(least: &mut Option<RemainingQuota<T>>, status: LimitStatus, amount: T) {
    if least.as_ref().is_none_or(|least| amount < least.amount) {
        *least = Some(RemainingQuota {
            limit: status.limit,
            max: status.max,
            amount,
            resets_at: status.resets_at,
        });
    }
}
