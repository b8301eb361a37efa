//! The quota leases in the accounts of this replica: they are taken over, frozen and returned. The lease manager calls
//! this.

use crate::quota::{QuotaBalance, QuotaLease, QuotaWindow};
use stint_types::chat::EpisodeLimits;
use stint_types::units::{AccountId, EpisodeId, Money, Timestamp};

use super::counted_limit::CountedLimit;
use super::error::QuotaNeed;
use super::state::LedgerState;
use super::tree::LimitsOn;

/// A lease that is to be returned except for a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseReturn {
    pub(crate) window: QuotaWindow,
    /// The limit.
    pub(crate) max: u64,
    /// How much of what it does not use the replica keeps.
    pub(crate) retain: u64,
}

impl LedgerState {
    /// Lowers a lease to what is used and `retain` beside; returns what is used, and whether nothing is open. `None` if
    /// the window is over here: what was used of it is forgotten, and nobody takes of it any more.
    pub(crate) fn freeze(&mut self, window: &QuotaWindow, retain: u64) -> Option<(u64, bool)> {
        let now = self.latest;
        let account = self.tree.find_account_mut(&window.account)?;
        account.count(&window.facet, now);
        let tally = account.tally_for(window)?;
        let (used, is_idle) = (tally.size(window.unit), tally.is_idle());
        let lease = tally.lease_mut(window.unit);
        lease.own = lease.own.min(used.saturating_add(retain)).max(used);
        Some((used, is_idle))
    }

    /// Takes over how a window stands; with `is_own`, also what this replica holds of it.
    pub(crate) fn apply_balance(&mut self, window: &QuotaWindow, balance: &QuotaBalance, is_own: bool) {
        let now = self.latest;
        if let Some(account) = self.tree.find_account_mut(&window.account) {
            account.roll(now);
        }
        let Some(lease) = self.lease_mut(window) else { return };
        lease.others = balance.granted.saturating_sub(balance.own);
        if is_own {
            (lease.own, lease.is_stale, lease.is_uncertain) = (balance.own, false, false);
        }
    }

    /// The lease of a window that is counted here.
    pub(crate) fn lease_mut(&mut self, window: &QuotaWindow) -> Option<&mut QuotaLease> {
        let account = self.tree.find_account_mut(&window.account)?;
        Some(account.tally_for(window)?.lease_mut(window.unit))
    }

    /// Counts what this replica had used of a window before it counted that part of the account; once.
    pub(crate) fn add_prior_usage(&mut self, window: &QuotaWindow, counted_since: Timestamp, before: u64) {
        let now = self.latest;
        if let Some(account) = self.tree.find_account_mut(&window.account) {
            account.add_prior_usage(window, counted_since, before, now);
        }
    }

    /// More than there can be of each of these limits: what must be asked of the coordinator to know what is left.
    pub(crate) fn need_all(
        &mut self,
        account: &AccountId,
        limits: &LimitsOn,
        now: Timestamp,
    ) -> Vec<QuotaNeed> {
        let now = self.advance_clock(now);
        match limits {
            LimitsOn::Requests(_) => {
                if let Some(place) = self.tree.find(account) {
                    self.tree.for_lineage(place, |_, account| account.roll(now));
                }
            }
            // Under another lease this replica may know nothing of it.
            LimitsOn::Episode(episode) => self.track_episode(account, episode, None, now),
        }
        self.tree.limits_on(account, limits, now).iter().map(CountedLimit::need_all).collect()
    }

    /// Whether what others leave of these limits is known exactly; `None` if there are no limits.
    pub(crate) fn has_fresh_balances(
        &self,
        account: &AccountId,
        limits: &LimitsOn,
        now: Timestamp,
    ) -> Option<bool> {
        let now = now.max(self.latest);
        let limits = self.tree.limits_on(account, limits, now);
        (!limits.is_empty()).then(|| limits.iter().all(|limit| limit.is_fresh(now)))
    }

    /// Begins to count an episode, if it is new, and holds it to these limits too.
    pub(crate) fn track_episode(
        &mut self,
        account: &AccountId,
        episode: &EpisodeId,
        limits: Option<&EpisodeLimits>,
        now: Timestamp,
    ) {
        let (now, is_shared) = (self.advance_clock(now), self.tree.is_shared);
        if let Some(account) = self.tree.find_account_mut(account) {
            account.episodes.track(episode, limits, now, is_shared);
        }
    }

    /// All leases of an account, or of all accounts, to be returned whole.
    pub(crate) fn leases(&self, of: Option<&AccountId>) -> Vec<LeaseReturn> {
        self.tree.leased(of).map(|limit| lease_return(&limit, 0)).collect()
    }

    /// The leases that one of so many replicas should return.
    pub(crate) fn idle_leases(&self, replicas: u64) -> Vec<LeaseReturn> {
        let idle = self.tree.leased(None).filter(|limit| limit.is_idle(replicas));
        idle.map(|limit| lease_return(&limit, limit.retained(replicas))).collect()
    }

    /// The money in all leases that is neither spent nor reserved.
    pub(crate) fn stranded(&self) -> Money {
        let money = self.tree.leased(None).map(|limit| limit.stranded());
        Money(money.fold(0, u64::saturating_add))
    }
}

fn lease_return(limit: &CountedLimit<'_>, retain: u64) -> LeaseReturn {
    LeaseReturn { window: limit.quota_window(), max: limit.max.size(), retain }
}
