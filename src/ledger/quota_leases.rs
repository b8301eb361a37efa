//! What a machine holds of limits that replicas share: slices are taken over, frozen and handed back.

use crate::chat::EpisodeLimits;
use crate::units::{EpisodeId, Money, Timestamp, Unit};

use super::lease_allocation::idle_share;
use super::quota_coordinator::{QuotaBalance, QuotaWindow};
use super::tally::{QuotaLease, WindowTally};
use super::{AccountId, LedgerState, QuotaNeed, RequestScope};

impl LedgerState {
    /// Takes no more of a purse than is used, and so much beside; says what is used, and whether nothing is open. Nothing, where its window is over
    /// here: what was used of it is forgotten, and nobody takes of it any more.
    pub(super) fn freeze(&mut self, purse: &QuotaWindow, keeps: u64) -> Option<(u64, bool)> {
        let now = self.latest;
        let account = self.tree.find_account_mut(&purse.account)?;
        account.count(&purse.facet, now);
        let tally = account.tally_for(purse)?;
        let (used, is_quiet) = (tally.size(purse.unit), tally.is_idle());
        let slice = tally.lease_mut(purse.unit);
        slice.own = slice.own.min(used.saturating_add(keeps)).max(used);
        Some((used, is_quiet))
    }

    /// Takes over how a purse stands: with `is_own`, also what this replica may use of it.
    pub(super) fn apply_balance(&mut self, purse: &QuotaWindow, balance: &QuotaBalance, is_own: bool) {
        let now = self.latest;
        let Some(account) = self.tree.find_account_mut(&purse.account) else { return };
        account.roll(now);
        let Some(tally) = account.tally_for(purse) else { return };
        let slice = tally.lease_mut(purse.unit);
        slice.others = balance.granted.saturating_sub(balance.own);
        if is_own {
            (slice.own, slice.is_stale, slice.is_uncertain) = (balance.own, false, false);
        }
    }

    /// The bank knows that nothing of a purse is open and nothing is not used, or that this may be otherwise.
    pub(super) fn set_final(&mut self, purse: &QuotaWindow, is_final: bool) {
        let account = self.tree.find_account_mut(&purse.account);
        if let Some(tally) = account.and_then(|account| account.tally_for(purse)) {
            tally.lease_mut(purse.unit).is_final = is_final;
        }
    }

    /// What the bank made of a purse is not known: it is to be asked again.
    pub(super) fn mark_uncertain(&mut self, purse: &QuotaWindow) {
        let account = self.tree.find_account_mut(&purse.account);
        if let Some(tally) = account.and_then(|account| account.tally_for(purse)) {
            tally.lease_mut(purse.unit).is_uncertain = true;
        }
    }

    /// Until then, what others have of a purse is all there is to know.
    pub(super) fn set_fresh_until(&mut self, purse: &QuotaWindow, until: Timestamp) {
        let account = self.tree.find_account_mut(&purse.account);
        if let Some(tally) = account.and_then(|account| account.tally_for(purse)) {
            tally.lease_mut(purse.unit).fresh_until = until;
        }
    }

    /// Whether nothing more can be known of the limits on such requests now.
    pub(super) fn has_fresh_balances(
        &self,
        account: &AccountId,
        about: &RequestScope,
        now: Timestamp,
    ) -> bool {
        self.tree.has_fresh_balances(account, about, now.max(self.latest))
    }

    /// Counts what this replica had used of a purse before it counted that part of the account; once.
    pub(super) fn add_prior_usage(&mut self, purse: &QuotaWindow, counted_since: Timestamp, before: u64) {
        let now = self.latest;
        if let Some(account) = self.tree.find_account_mut(&purse.account) {
            account.add_prior_usage(purse, counted_since, before, now);
        }
    }

    /// As if more was needed than there can be of every limit on such requests.
    pub(super) fn all_needs(
        &mut self,
        account: &AccountId,
        about: &RequestScope,
        now: Timestamp,
    ) -> Vec<QuotaNeed> {
        let now = self.advance_clock(now);
        self.tree.all_needs(account, about, now)
    }

    /// Whether a run has limits.
    pub(super) fn has_episode_limits(&self, account: &AccountId, episode: &EpisodeId) -> bool {
        self.tree.find_account(account).is_some_and(|account| account.has_episode_limits(episode))
    }

    /// Whether nothing more can be known of all limits of a run now.
    pub(super) fn has_fresh_episode_balances(
        &self,
        account: &AccountId,
        episode: &EpisodeId,
        now: Timestamp,
    ) -> bool {
        let now = now.max(self.latest);
        self.tree.find_account(account).is_none_or(|account| account.has_fresh_episode_balances(episode, now))
    }

    /// Holds a run to these limits too.
    pub(super) fn lower_episode_limits(
        &mut self,
        account: &AccountId,
        episode: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) {
        let (now, is_shared) = (self.advance_clock(now), self.tree.is_shared);
        if let Some(account) = self.tree.find_account_mut(account) {
            account.track_episode(episode, Some(limits), now, is_shared);
        }
    }

    /// As if more was needed than there can be of every limit of a run.
    pub(super) fn all_episode_needs(
        &mut self,
        account: &AccountId,
        episode: &EpisodeId,
        now: Timestamp,
    ) -> Vec<QuotaNeed> {
        let (now, is_shared) = (self.advance_clock(now), self.tree.is_shared);
        let Some(known) = self.tree.find_account_mut(account) else { return Vec::new() };
        // Another life may have begun that knows nothing of it.
        known.track_episode(episode, None, now, is_shared);
        known.all_episode_needs(account, episode)
    }

    /// All slices of an account, or of all accounts; with each, the limit, and how much of what it does not use the
    /// replica would keep, were there so many.
    pub(super) fn leases(&mut self, of: Option<&AccountId>, replicas: u64) -> Vec<(QuotaWindow, u64, u64)> {
        let every = |_: &WindowTally, _: Unit, _: u64| true;
        let all: Vec<_> = match of {
            Some(id) => self
                .tree
                .find_account_mut(id)
                .map(|account| account.leased_windows(id, every))
                .unwrap_or_default(),
            None => {
                self.tree.accounts().flat_map(|(id, account)| account.leased_windows(id, every)).collect()
            }
        };
        let runs: Vec<_> = match of {
            Some(id) => self
                .tree
                .find_account_mut(id)
                .map(|account| account.leased_episode_windows(id, every))
                .unwrap_or_default(),
            None => self
                .tree
                .accounts()
                .flat_map(|(id, account)| account.leased_episode_windows(id, every))
                .collect(),
        };
        let kept = |(purse, max, slice)| (purse, max, retained(max, slice, replicas));
        all.into_iter().map(kept).chain(runs.into_iter().map(retain_none)).collect()
    }

    /// The slices that hold more than twice of what they may without needing it, and those that are in doubt.
    pub(super) fn idle_leases(&mut self, replicas: u64) -> Vec<(QuotaWindow, u64, u64)> {
        let is_idle = |tally: &WindowTally, unit: Unit, max: u64| {
            let (slice, used) = (tally.lease(unit), tally.size(unit));
            let spare = slice.own.saturating_sub(used);
            slice.is_stale
                || slice.is_uncertain
                || slice.own < used
                || spare > retained(max, slice, replicas).saturating_mul(2)
        };
        let all = self.tree.accounts().flat_map(|(id, account)| account.leased_windows(id, is_idle));
        let mut idle: Vec<_> =
            all.map(|(purse, max, slice)| (purse, max, retained(max, slice, replicas))).collect();
        // Of a run nothing is kept, and where nothing of it is open the bank is told so: nobody needs to ask then.
        let is_idle = |tally: &WindowTally, unit: Unit, _: u64| {
            tally.is_idle() || tally.lease(unit).is_uncertain || tally.lease(unit).own != tally.size(unit)
        };
        let runs = self.tree.accounts().flat_map(|(id, account)| account.leased_episode_windows(id, is_idle));
        idle.extend(runs.map(retain_none));
        idle
    }

    /// The money in all slices that is neither spent nor reserved.
    pub(super) fn stranded(&mut self) -> Money {
        let mut sum = 0u64;
        let mut add = |tally: &WindowTally, unit: Unit, _: u64| {
            let spare = tally.lease(unit).own.saturating_sub(tally.size(unit));
            sum = sum.saturating_add(if unit == Unit::Money { spare } else { 0 });
            false
        };
        for (id, account) in self.tree.accounts() {
            account.leased_windows(id, &mut add);
            account.leased_episode_windows(id, &mut add);
        }
        Money(sum)
    }
}

fn retain_none((purse, max, _): (QuotaWindow, u64, QuotaLease)) -> (QuotaWindow, u64, u64) {
    (purse, max, 0)
}

/// How much of what it does not use one of so many replicas keeps.
fn retained(max: u64, slice: QuotaLease, replicas: u64) -> u64 {
    let granted = slice.own.saturating_add(slice.others);
    idle_share(max, &QuotaBalance { granted, replicas, ..QuotaBalance::default() })
}
