//! What is known of runs: read from the journal where it is not, gathered from other replicas, and forgotten when nobody
//! asks for it any more. The rows stay, so nothing is lost by that.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::chat::EpisodeLimits;
use crate::units::{EpisodeId, Timestamp};

use super::sharing::What;
use super::tree::Tree;
use super::{AccountId, Accounts, Claim, EpisodeStanding, EpisodeUse, JournalError, Ledger, Refused};

/// So many runs are remembered, beside those that somebody asked for a moment ago.
const EPISODES_MAX: usize = 100_000;
/// How often runs are looked through, and how long each is remembered at least.
const TIDY: Duration = Duration::from_secs(60);

impl Ledger {
    /// How a run stands, as far as that is known here: where it was not asked for yet since this process began, or where
    /// replicas share the accounts, only once it was gathered.
    pub fn episode(&self, account: &AccountId, episode: &EpisodeId) -> EpisodeStanding {
        self.accounts().episode(account, episode)
    }

    /// Sees to it that it is known here how a run stands, now: what it took before, and what others left of its limits. Waits
    /// a bounded time for that.
    pub async fn gather_episode(&self, account: &AccountId, episode: &EpisodeId, limits: &EpisodeLimits) {
        if let Some(sharing) = &self.inner.sharing {
            let (has_limits, is_known) = {
                let (mut accounts, now) = (self.accounts(), sharing.now());
                accounts.hold_to(account, episode, limits, now);
                (accounts.limits_episode(account, episode), accounts.knows_all_of(account, episode, now))
            };
            if has_limits && is_known {
                return;
            }
            if has_limits {
                let (answer, answered) = oneshot::channel();
                let what = What::GatherEpisode(account.clone(), episode.clone(), answer);
                sharing.wait(what, self.inner.settings.dispatch_max);
                // Where nobody answers, what was known before must do.
                let _ = answered.await;
            }
        }
        if let Err(error) = self.recall(account, episode).await {
            tracing::warn!(%error, %account, %episode, "what a run took before cannot be read");
        }
    }

    /// Sees to it that it is known what the run took before that a claim is a step of.
    pub(super) async fn prepare(&self, claim: &Claim) -> Result<(), Refused> {
        let Some(episode) = &claim.about.episode else { return Ok(()) };
        self.recall(&claim.account, episode).await.map_err(|error| {
            tracing::warn!(%error, account = %claim.account, %episode, "what a run took before cannot be read");
            Refused::Summing
        })
    }

    async fn recall(&self, account: &AccountId, episode: &EpisodeId) -> Result<(), JournalError> {
        let (is_known, has_forgotten) = {
            let accounts = self.accounts();
            (accounts.knows_episode(account, episode), accounts.has_forgotten())
        };
        if is_known && !self.is_shared() {
            return Ok(());
        }
        let read = timeout(self.inner.settings.dispatch_max, async {
            if has_forgotten && !self.is_shared() {
                // What it took may be on its way still.
                self.inner.queue.written().await?;
            }
            self.journal().episode(account, episode).await
        });
        let used = read.await.unwrap_or_else(|_| Err(JournalError::new("the journal took too long")))?;
        self.accounts().recall(account, episode, &used);
        Ok(())
    }

    /// Waits until something of a run is resolved here, from the call on, polled or not; it may end early. Nobody
    /// promises that anything will be: how long to wait is the caller's to say.
    pub fn resolved_of(&self, episode: &EpisodeId) -> Notified<'_> {
        self.inner.bells.heard(episode.as_str())
    }

    /// The same of an account and of all that share a limit with it.
    pub fn resolved_under(&self, account: &AccountId) -> Notified<'_> {
        self.inner.bells.heard(root(account))
    }
}

/// The root of an account's tree.
pub(super) fn root(account: &AccountId) -> &str {
    account.lineage().next().unwrap_or_default()
}

impl Accounts {
    /// Whether it is known what a run took; of an account that nobody has, there is nothing to know.
    pub(super) fn knows_episode(&self, account: &AccountId, episode: &EpisodeId) -> bool {
        self.tree.known(account).is_none_or(|account| account.episodes.contains_key(episode))
    }

    /// True where what is not known may have been.
    pub(super) fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// Takes over what the journal says of a run.
    pub(super) fn recall(&mut self, account: &AccountId, episode: &EpisodeId, used: &EpisodeUse) {
        let (now, is_shared) = (self.latest, self.tree.is_shared);
        if let Some(account) = self.tree.account(account) {
            account.recall(episode, used, now, is_shared);
        }
    }

    /// Forgets runs that nobody asked for so long, and of too many those that nobody asked for longest.
    pub(super) fn forget_episodes(&mut self, idle: Duration, now: Timestamp) {
        let now = self.tick(now);
        if now < self.tidied + TIDY {
            return;
        }
        self.tidied = now;
        let mut used = Vec::new();
        self.has_forgotten |= self.tree.forget_episodes(now.before(idle.max(TIDY)), &mut used);
        if used.len() > EPISODES_MAX {
            let surplus = used.len() - EPISODES_MAX;
            let (_, last, _) = used.select_nth_unstable(surplus);
            let since = (*last).min(now.before(TIDY));
            self.has_forgotten |= self.tree.forget_episodes(since, &mut Vec::new());
        }
    }
}

impl Tree {
    /// Forgets runs that nobody asked for since then; when the others were last asked for.
    pub(super) fn forget_episodes(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> bool {
        let forgotten = self.accounts().map(|(_, account)| account.forget_episodes(since, used));
        forgotten.sum::<usize>() > 0
    }
}
