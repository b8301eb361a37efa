//! Runs of agents: what a step of one sets aside, and how one stands.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{Count, EpisodeId, Money, Tokens};

use super::{AccountId, Ledger};

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
        let _ = (account, episode, limits);
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
