//! Bounds how many episodes the accounts keep in memory. The journal stores what they used, so an episode can be forgotten
//! without loss.

use std::time::Duration;

use crate::rows::EpisodeUsage;
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::state::LedgerState;

/// So many episodes are remembered, in addition to those that were in use a moment ago.
const EPISODES_MAX: usize = 100_000;

/// How often episodes are evicted, and how long each is remembered at least.
const EVICTION_INTERVAL: Duration = Duration::from_secs(60);

impl LedgerState {
    /// Whether it is known what an episode used. Of an unknown account, there is nothing to know.
    pub(crate) fn has_episode(&self, account: &AccountId, episode: &EpisodeId) -> bool {
        self.tree.find_account(account).is_none_or(|account| account.episodes.contains(episode))
    }

    /// True if an episode that is not known may have been.
    pub(crate) fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Takes over what an episode used by the journal.
    pub(crate) fn restore_episode(&mut self, account: &AccountId, episode: &EpisodeId, used: &EpisodeUsage) {
        let (now, is_shared) = (self.latest, self.tree.is_shared);
        if let Some(account) = self.tree.find_account_mut(account) {
            account.episodes.restore(episode, used, now, is_shared);
        }
    }

    /// Forgets episodes that were not in use so long, and of too many those that were not in use longest.
    pub(crate) fn evict_episodes(&mut self, idle: Duration, now: Timestamp) {
        let now = self.advance_clock(now);
        if now < self.evicted_at + EVICTION_INTERVAL {
            return;
        }
        self.evicted_at = now;
        let mut used = Vec::new();
        self.has_evicted |= self.tree.evict_episodes(now.before(idle.max(EVICTION_INTERVAL)), &mut used);
        if used.len() > EPISODES_MAX {
            let surplus = used.len() - EPISODES_MAX;
            let (_, last, _) = used.select_nth_unstable(surplus);
            let since = (*last).min(now.before(EVICTION_INTERVAL));
            self.has_evicted |= self.tree.evict_episodes(since, &mut Vec::new());
        }
    }
}
