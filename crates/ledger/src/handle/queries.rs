//! Queries on accounts and limits, for the gateway, the admin API and the command line.

use crate::LedgerStats;
use crate::accounts::{AccountTotals, LedgerError, LimitStatus, Shortfall};
use crate::rows::{Amounts, GroupUsage, RequestScope, UsageQuery};
use stint_types::catalog::Allowance;
use stint_types::chat::EpisodeLimits;
use stint_types::units::{AccountId, Limit, Money, Timestamp};

use super::ledger::Ledger;

impl Ledger {
    /// What is left under the tightest limit of each unit.
    pub fn allowance(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Allowance {
        self.core.accounts().allowance(account, about, now)
    }

    /// The same, also under these limits of the episode that `about` names, and under those that its steps brought
    /// before.
    pub fn allowance_within(
        &self,
        account: &AccountId,
        about: &RequestScope,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Allowance {
        self.core.accounts().allowance_within(account, about, limits, now)
    }

    /// How every limit of the account and its ancestors stands, the root's first; those on each user, for the one that
    /// requests are about.
    pub fn statement(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Vec<LimitStatus> {
        self.core.accounts().statement(account, about, now)
    }

    /// Every account over all time, by name. Where replicas share the accounts, what this one spent since it began.
    pub fn totals(&self) -> Vec<AccountTotals> {
        self.core.accounts().totals()
    }

    /// What was used, by group, in the order of the groups; at most as many as asked for.
    pub async fn usage(&self, query: &UsageQuery) -> Result<Vec<GroupUsage>, LedgerError> {
        Ok(self.core.journal().usage(query).await?)
    }

    /// Whether what lacks under a limit is merely reserved by other open requests of this replica, so that it may come
    /// back. `own` is what the asking request has reserved itself.
    pub fn can_be_released(
        &self,
        account: &AccountId,
        about: &RequestScope,
        shortfall: &Shortfall,
        own: Amounts,
    ) -> bool {
        let (now, none) = (self.now(), EpisodeLimits::default());
        let statuses = self.core.accounts().all_limit_statuses(account, about, &none, now);
        let status = statuses.into_iter().find(|status| status.limit == shortfall.limit);
        status.is_some_and(|status| {
            let kept = status.spent.size().saturating_add(own.of(status.max.unit()).size());
            kept.saturating_add(shortfall.needed.size()) <= status.max.size()
        })
    }

    /// A limit refused a request of this account. Warns, unless it did in this window.
    pub fn record_refusal(&self, account: &AccountId, limit: &Limit) {
        let warning = self.core.accounts().record_refusal(account, limit);
        self.core.warn(warning.as_slice());
    }

    /// All that is reserved now.
    pub fn reserved(&self) -> Amounts {
        self.core.accounts().reserved()
    }

    /// How many reservations are open.
    pub fn open_reservations(&self) -> usize {
        self.core.accounts().open()
    }

    /// What this replica holds of limits on money beyond what is spent and reserved.
    pub fn stranded(&self) -> Money {
        self.core.accounts().stranded()
    }

    /// The state of the way to the journal.
    pub fn stats(&self) -> LedgerStats {
        self.core.stats()
    }
}
