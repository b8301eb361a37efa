//! What a machine holds of limits that replicas share: slices are taken over, frozen and handed back.

use crate::chat::EpisodeLimits;
use crate::units::{EpisodeId, Money, Timestamp, Unit};

use super::lease::{Balance, Purse};
use super::share::share;
use super::tally::{Slice, Tally};
use super::{About, AccountId, Accounts, Need};

impl Accounts {
    /// Takes no more of a purse than is used, and so much beside; says what is used, and whether nothing is open. Nothing, where its window is over
    /// here: what was used of it is forgotten, and nobody takes of it any more.
    pub(super) fn freeze(&mut self, purse: &Purse, keeps: u64) -> Option<(u64, bool)> {
        let now = self.latest;
        let account = self.tree.account(&purse.account)?;
        account.count(&purse.facet, now);
        let tally = account.window_of(purse)?;
        let (used, is_quiet) = (tally.size(purse.unit), tally.is_quiet());
        let slice = tally.slice_mut(purse.unit);
        slice.own = slice.own.min(used.saturating_add(keeps)).max(used);
        Some((used, is_quiet))
    }

    /// Takes over how a purse stands: with `is_own`, also what this replica may use of it.
    pub(super) fn hear(&mut self, purse: &Purse, balance: &Balance, is_own: bool) {
        let now = self.latest;
        let Some(account) = self.tree.account(&purse.account) else { return };
        account.roll(now);
        let Some(tally) = account.window_of(purse) else { return };
        let slice = tally.slice_mut(purse.unit);
        slice.others = balance.granted.saturating_sub(balance.slice);
        if is_own {
            (slice.own, slice.is_stale, slice.is_unsure) = (balance.slice, false, false);
        }
    }

    /// The bank knows that nothing of a purse is open and nothing is not used, or that this may be otherwise.
    pub(super) fn close(&mut self, purse: &Purse, is_final: bool) {
        let account = self.tree.account(&purse.account);
        if let Some(tally) = account.and_then(|account| account.window_of(purse)) {
            tally.slice_mut(purse.unit).is_final = is_final;
        }
    }

    /// What the bank made of a purse is not known: it is to be asked again.
    pub(super) fn doubt(&mut self, purse: &Purse) {
        let account = self.tree.account(&purse.account);
        if let Some(tally) = account.and_then(|account| account.window_of(purse)) {
            tally.slice_mut(purse.unit).is_unsure = true;
        }
    }

    /// Until then, what others have of a purse is all there is to know.
    pub(super) fn know(&mut self, purse: &Purse, until: Timestamp) {
        let account = self.tree.account(&purse.account);
        if let Some(tally) = account.and_then(|account| account.window_of(purse)) {
            tally.slice_mut(purse.unit).known_until = until;
        }
    }

    /// Whether nothing more can be known of the limits on such requests now.
    pub(super) fn knows(&self, account: &AccountId, about: &About, now: Timestamp) -> bool {
        self.tree.knows(account, about, now.max(self.latest))
    }

    /// Counts what this replica had used of a purse before it counted that part of the account; once.
    pub(super) fn remember(&mut self, purse: &Purse, counted_since: Timestamp, before: u64) {
        let now = self.latest;
        if let Some(account) = self.tree.account(&purse.account) {
            account.remember(purse, counted_since, before, now);
        }
    }

    /// As if more was needed than there can be of every limit on such requests.
    pub(super) fn all_of(&mut self, account: &AccountId, about: &About, now: Timestamp) -> Vec<Need> {
        let now = self.tick(now);
        self.tree.all_of(account, about, now)
    }

    /// Whether a run has limits.
    pub(super) fn limits_episode(&self, account: &AccountId, episode: &EpisodeId) -> bool {
        self.tree.known(account).is_some_and(|account| account.limits_episode(episode))
    }

    /// Whether nothing more can be known of all limits of a run now.
    pub(super) fn knows_all_of(&self, account: &AccountId, episode: &EpisodeId, now: Timestamp) -> bool {
        let now = now.max(self.latest);
        self.tree.known(account).is_none_or(|account| account.knows_all_of(episode, now))
    }

    /// Holds a run to these limits too.
    pub(super) fn hold_to(
        &mut self,
        account: &AccountId,
        episode: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) {
        let (now, is_shared) = (self.tick(now), self.tree.is_shared);
        if let Some(account) = self.tree.account(account) {
            account.know(episode, Some(limits), now, is_shared);
        }
    }

    /// As if more was needed than there can be of every limit of a run.
    pub(super) fn all_of_episode(
        &mut self,
        account: &AccountId,
        episode: &EpisodeId,
        now: Timestamp,
    ) -> Vec<Need> {
        let (now, is_shared) = (self.tick(now), self.tree.is_shared);
        let Some(known) = self.tree.account(account) else { return Vec::new() };
        // Another life may have begun that knows nothing of it.
        known.know(episode, None, now, is_shared);
        known.all_of_episode(account, episode)
    }

    /// All slices of an account, or of all accounts; with each, the limit, and how much of what it does not use the
    /// replica would keep, were there so many.
    pub(super) fn slices(&mut self, of: Option<&AccountId>, replicas: u64) -> Vec<(Purse, u64, u64)> {
        let every = |_: &Tally, _: Unit, _: u64| true;
        let all: Vec<_> = match of {
            Some(id) => self.tree.account(id).map(|account| account.purses(id, every)).unwrap_or_default(),
            None => self.tree.accounts().flat_map(|(id, account)| account.purses(id, every)).collect(),
        };
        let runs: Vec<_> = match of {
            Some(id) => {
                self.tree.account(id).map(|account| account.purses_of_episodes(id, every)).unwrap_or_default()
            }
            None => {
                self.tree.accounts().flat_map(|(id, account)| account.purses_of_episodes(id, every)).collect()
            }
        };
        let kept = |(purse, max, slice)| (purse, max, kept(max, slice, replicas));
        all.into_iter().map(kept).chain(runs.into_iter().map(nothing_kept)).collect()
    }

    /// The slices that hold more than twice of what they may without needing it, and those that are in doubt.
    pub(super) fn idle(&mut self, replicas: u64) -> Vec<(Purse, u64, u64)> {
        let is_idle = |tally: &Tally, unit: Unit, max: u64| {
            let (slice, used) = (tally.slice(unit), tally.size(unit));
            let spare = slice.own.saturating_sub(used);
            slice.is_stale
                || slice.is_unsure
                || slice.own < used
                || spare > kept(max, slice, replicas).saturating_mul(2)
        };
        let all = self.tree.accounts().flat_map(|(id, account)| account.purses(id, is_idle));
        let mut idle: Vec<_> =
            all.map(|(purse, max, slice)| (purse, max, kept(max, slice, replicas))).collect();
        // Of a run nothing is kept, and where nothing of it is open the bank is told so: nobody needs to ask then.
        let is_idle = |tally: &Tally, unit: Unit, _: u64| {
            tally.is_quiet() || tally.slice(unit).is_unsure || tally.slice(unit).own != tally.size(unit)
        };
        let runs = self.tree.accounts().flat_map(|(id, account)| account.purses_of_episodes(id, is_idle));
        idle.extend(runs.map(nothing_kept));
        idle
    }

    /// The money in all slices that is neither spent nor reserved.
    pub(super) fn stranded(&mut self) -> Money {
        let mut sum = 0u64;
        let mut add = |tally: &Tally, unit: Unit, _: u64| {
            let spare = tally.slice(unit).own.saturating_sub(tally.size(unit));
            sum = sum.saturating_add(if unit == Unit::Money { spare } else { 0 });
            false
        };
        for (id, account) in self.tree.accounts() {
            account.purses(id, &mut add);
            account.purses_of_episodes(id, &mut add);
        }
        Money(sum)
    }
}

fn nothing_kept((purse, max, _): (Purse, u64, Slice)) -> (Purse, u64, u64) {
    (purse, max, 0)
}

/// How much of what it does not use one of so many replicas keeps.
fn kept(max: u64, slice: Slice, replicas: u64) -> u64 {
    let granted = slice.own.saturating_add(slice.others);
    share(max, &Balance { granted, replicas, ..Balance::default() })
}
