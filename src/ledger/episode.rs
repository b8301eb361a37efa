//! Runs of agents: what a step of one sets aside, and how one stands.

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{Count, EpisodeId, Money, Tokens};

use super::sharing::What;
use super::{AccountId, Amounts, Claim, JournalError, Ledger, Refused};

/// What a request takes as one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// What the whole run may take. The ledger remembers it; said again it is only lowered.
    pub limits: EpisodeLimits,
    /// The tool calls that are set aside.
    pub tools: ToolCounts,
    /// What those cost at most. It is part of the worst case's money.
    pub tools_cost: Money,
}

/// What a run took, or has set aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeUse {
    /// Money: tokens at their prices and tool calls at theirs.
    pub cost: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// Requests.
    pub turns: Count,
    /// Tool calls.
    pub tools: ToolCounts,
}

impl EpisodeUse {
    /// The greater of both, each for itself.
    pub(super) fn at_least(mut self, other: &EpisodeUse) -> EpisodeUse {
        self.cost = self.cost.max(other.cost);
        self.thinking = self.thinking.max(other.thinking);
        self.turns = self.turns.max(other.turns);
        self.tools.all = self.tools.all.max(other.tools.all);
        for (tool, count) in &other.tools.each {
            let mine = self.tools.each.entry(tool.clone()).or_default();
            *mine = (*mine).max(*count);
        }
        self
    }

    /// Adds what a request took that was a step of it.
    pub(crate) fn add(&mut self, spent: Amounts, tools: &ToolCounts) {
        self.cost += spent.money;
        self.thinking += spent.thinking;
        self.turns += spent.requests;
        self.tools.all += spent.tool_calls;
        for (tool, count) in &tools.each {
            *self.tools.each.entry(tool.clone()).or_default() += *count;
        }
    }
}

/// How a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeStanding {
    /// What it took. Where replicas share the accounts, what others have of a limit counts as spent.
    pub spent: EpisodeUse,
    /// What its open steps have set aside here.
    pub reserved: EpisodeUse,
}

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
            let now = sharing.now();
            if self.accounts().hold_to(account, episode, limits, now) {
                return;
            }
            let (answer, answered) = oneshot::channel();
            let what = What::GatherEpisode(account.clone(), episode.clone(), answer);
            sharing.wait(what, self.inner.settings.dispatch_max);
            // Where nobody answers, what was known before must do.
            let _ = answered.await;
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
        self.inner.bells.heard(episode)
    }
}

/// Several runs share a bell: who is woken by another's looks again.
const BELLS: usize = 256;

/// Rings when something of a run is resolved.
#[derive(Debug)]
pub(super) struct Bells(Box<[Notify]>);

impl Bells {
    pub(super) fn new() -> Bells {
        Bells((0..BELLS).map(|_| Notify::new()).collect())
    }

    fn of(&self, episode: &EpisodeId) -> &Notify {
        let spread = |hash: usize, byte: u8| hash.wrapping_mul(31).wrapping_add(usize::from(byte));
        &self.0[episode.as_str().bytes().fold(0, spread) % BELLS]
    }

    pub(super) fn ring(&self, episode: &EpisodeId) {
        self.of(episode).notify_waiters();
    }

    /// Hears what rings from now on, polled or not.
    pub(super) fn heard(&self, episode: &EpisodeId) -> Notified<'_> {
        self.of(episode).notified()
    }
}
