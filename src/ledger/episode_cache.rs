//! What is known of runs: read from the journal where it is not, gathered from other replicas, and forgotten when nobody
//! asks for it any more. The rows stay, so nothing is lost by that.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::chat::EpisodeLimits;
use crate::units::{EpisodeId, Timestamp};

use super::quota_client::QuotaRequest;
use super::tree::AccountTree;
use super::{
    AccountId, EpisodeBalance, EpisodeUsage, JournalError, Ledger, LedgerState, ReservationRequest,
    ReserveError,
};

/// So many runs are remembered, beside those that somebody asked for a moment ago.
const EPISODES_MAX: usize = 100_000;
/// How often runs are looked through, and how long each is remembered at least.
const EVICTION_INTERVAL: Duration = Duration::from_secs(60);

impl Ledger {
    /// How a run stands, as far as that is known here: where it was not asked for yet since this process began, or where
    /// replicas share the accounts, only once it was gathered.
    pub fn episode(&self, account: &AccountId, episode: &EpisodeId) -> EpisodeBalance {
        self.accounts().episode(account, episode)
    }

    /// Sees to it that it is known here how a run stands, now: what it took before, and what others left of its limits. Waits
    /// a bounded time for that.
    pub async fn refresh_episode(&self, account: &AccountId, episode: &EpisodeId, limits: &EpisodeLimits) {
        if let Some(sharing) = &self.inner.sharing {
            let (has_limits, is_known) = {
                let (mut accounts, now) = (self.accounts(), sharing.now());
                accounts.lower_episode_limits(account, episode, limits, now);
                (
                    accounts.has_episode_limits(account, episode),
                    accounts.has_fresh_episode_balances(account, episode, now),
                )
            };
            if has_limits && is_known {
                return;
            }
            if has_limits {
                let (answer, answered) = oneshot::channel();
                let what = QuotaRequest::RefreshEpisode(account.clone(), episode.clone(), answer);
                sharing.enqueue(what, self.inner.settings.dispatch_max);
                // Where nobody answers, what was known before must do.
                let _ = answered.await;
            }
        }
        if let Err(error) = self.load_episode(account, episode).await {
            tracing::warn!(%error, %account, %episode, "what a run took before cannot be read");
        }
    }

    /// Sees to it that it is known what the run took before that a claim is a step of.
    pub(super) async fn ensure_episode_loaded(&self, claim: &ReservationRequest) -> Result<(), ReserveError> {
        let Some(episode) = &claim.about.episode else { return Ok(()) };
        self.load_episode(&claim.account, episode).await.map_err(|error| {
            tracing::warn!(%error, account = %claim.account, %episode, "what a run took before cannot be read");
            ReserveError::Summing
        })
    }

    async fn load_episode(&self, account: &AccountId, episode: &EpisodeId) -> Result<(), JournalError> {
        let (is_known, has_forgotten) = {
            let accounts = self.accounts();
            (accounts.has_episode(account, episode), accounts.has_evicted())
        };
        if is_known && !self.is_shared() {
            return Ok(());
        }
        let read = timeout(self.inner.settings.dispatch_max, async {
            if has_forgotten && !self.is_shared() {
                // What it took may be on its way still.
                self.inner.queue.flush().await?;
            }
            self.journal().episode_usage(account, episode).await
        });
        let used = read.await.unwrap_or_else(|_| Err(JournalError::new("the journal took too long")))?;
        self.accounts().restore_episode(account, episode, &used);
        Ok(())
    }

    /// Waits until something of a run is resolved here, from the call on, polled or not; it may end early. Nobody
    /// promises that anything will be: how long to wait is the caller's to say.
    pub fn episode_notified(&self, episode: &EpisodeId) -> Notified<'_> {
        self.inner.notifiers.notified(episode.as_str())
    }

    /// The same of an account and of all that share a limit with it.
    pub fn account_notified(&self, account: &AccountId) -> Notified<'_> {
        self.inner.notifiers.notified(root(account))
    }
}

/// The root of an account's tree.
pub(super) fn root(account: &AccountId) -> &str {
    account.lineage().next().unwrap_or_default()
}

impl LedgerState {
    /// Whether it is known what a run took; of an account that nobody has, there is nothing to know.
    pub(super) fn has_episode(&self, account: &AccountId, episode: &EpisodeId) -> bool {
        self.tree.find_account(account).is_none_or(|account| account.episodes.contains_key(episode))
    }

    /// True where what is not known may have been.
    pub(super) fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Takes over what the journal says of a run.
    pub(super) fn restore_episode(&mut self, account: &AccountId, episode: &EpisodeId, used: &EpisodeUsage) {
        let (now, is_shared) = (self.latest, self.tree.is_shared);
        if let Some(account) = self.tree.find_account_mut(account) {
            account.restore_episode(episode, used, now, is_shared);
        }
    }

    /// Forgets runs that nobody asked for so long, and of too many those that nobody asked for longest.
    pub(super) fn evict_episodes(&mut self, idle: Duration, now: Timestamp) {
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

impl AccountTree {
    /// Forgets runs that nobody asked for since then; when the others were last asked for.
    pub(super) fn evict_episodes(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> bool {
        let forgotten = self.accounts().map(|(_, account)| account.evict_episodes(since, used));
        forgotten.sum::<usize>() > 0
    }
}
