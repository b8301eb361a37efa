//! How an account stands, for those who ask.

use crate::catalog::{Allowance, RemainingQuota};
use crate::chat::EpisodeLimits;
use crate::units::{Amount, Facet, Limit, Money, Timestamp};

use super::{AccountId, Amounts, Ledger, RequestScope};

/// How one limit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitStatus {
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
pub struct AccountTotals {
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

impl Ledger {
    /// What is left under the tightest limit of each unit.
    pub fn allowance(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Allowance {
        self.accounts().allowance(account, about, now)
    }

    /// The same, also under these limits of the run that `about` names, and under those that were said of it before.
    pub fn allowance_within(
        &self,
        account: &AccountId,
        about: &RequestScope,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Allowance {
        self.accounts().allowance_within(account, about, limits, now)
    }

    /// How every limit of the account and its ancestors stands, the root's first; those on each user, for the one that
    /// requests are about.
    pub fn statement(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Vec<LimitStatus> {
        self.accounts().statement(account, about, now)
    }

    /// Every account over all time, by name. Where replicas share the accounts, what this one spent since it began.
    pub fn totals(&self) -> Vec<AccountTotals> {
        self.accounts().totals()
    }
}

/// The least of what these limits leave to requests about this; what they leave to one model, by model.
pub(super) fn tightest(lines: Vec<LimitStatus>, about: &RequestScope) -> Allowance {
    let mut allowance = Allowance::default();
    for line in lines {
        let purse = match &line.limit.facet {
            Facet::Model(name) => allowance.models.entry(name.clone()).or_default(),
            Facet::Tag(tag) if about.tag.as_ref() != Some(tag) => continue,
            _ => &mut allowance.overall,
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

fn tighten<T: Ord>(least: &mut Option<RemainingQuota<T>>, line: LimitStatus, amount: T) {
    if least.as_ref().is_none_or(|least| amount < least.amount) {
        *least = Some(RemainingQuota { limit: line.limit, amount, resets_at: line.resets_at });
    }
}
