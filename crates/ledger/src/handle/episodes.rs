//! Queries on episodes: their balances, and notifications when something of them is resolved.

use tokio::sync::futures::Notified;

use crate::accounts::LimitsOn;
use crate::commit::root;
use crate::rows::EpisodeBalance;
use stint_types::chat::EpisodeLimits;
use stint_types::units::{AccountId, EpisodeId};

use super::episode_loading::load_episode;
use super::ledger::Ledger;

impl Ledger {
    /// How an episode stands, as far as that is known here. It is known in full only after
    /// [`Ledger::refresh_episode`] if nobody used it since this process began, or if replicas share the accounts.
    pub fn episode(&self, account: &AccountId, episode: &EpisodeId) -> EpisodeBalance {
        self.core.accounts().episode(account, episode)
    }

    /// Makes sure that it is known here how an episode stands now: what it used before, and what others left of its
    /// limits. Waits a bounded time for that.
    pub async fn refresh_episode(&self, account: &AccountId, episode: &EpisodeId, limits: &EpisodeLimits) {
        if let Some(requests) = &self.requests {
            let (of_episode, now) = (LimitsOn::Episode(episode.clone()), self.now());
            let is_fresh = {
                let mut accounts = self.core.accounts();
                accounts.track_episode(account, episode, Some(limits), now);
                accounts.has_fresh_balances(account, &of_episode, now)
            };
            match is_fresh {
                Some(true) => return,
                Some(false) => requests.refresh(account.clone(), of_episode, self.dispatch_max()).await,
                None => {}
            }
        }
        if let Err(error) = load_episode(&self.core, account, episode).await {
            tracing::warn!(%error, %account, %episode, "what a run took before cannot be read");
        }
    }

    /// Waits until something of an episode is resolved here, from the call on, polled or not; it may end early. Nobody
    /// promises that anything will be: the caller decides how long to wait.
    pub fn episode_notified(&self, episode: &EpisodeId) -> Notified<'_> {
        self.core.notifiers.notified(episode.as_str())
    }

    /// The same of an account and of all that share a limit with it.
    pub fn account_notified(&self, account: &AccountId) -> Notified<'_> {
        self.core.notifiers.notified(root(account))
    }
}
