//! Runs of agents: what a step of one sets aside, and how one stands.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{Count, Money, Tokens};

use super::Amounts;

/// What a request takes as one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepReservation {
    /// What the whole run may take. The ledger remembers it; said again it is only lowered.
    pub limits: EpisodeLimits,
    /// The tool calls that are set aside.
    pub tools: ToolCounts,
    /// What those cost at most. It is part of the worst case's money.
    pub tools_cost: Money,
}

/// What a run took, or has set aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeUsage {
    /// Money: tokens at their prices and tool calls at theirs.
    pub cost: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// Requests.
    pub turns: Count,
    /// Tool calls.
    pub tools: ToolCounts,
}

impl EpisodeUsage {
    /// The greater of both, each for itself.
    #[must_use]
    pub fn at_least(mut self, other: &EpisodeUsage) -> EpisodeUsage {
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

    /// What of it is more than the other.
    pub(super) fn beyond(mut self, other: &EpisodeUsage) -> EpisodeUsage {
        self.cost = self.cost.saturating_sub(other.cost);
        self.thinking = self.thinking.saturating_sub(other.thinking);
        self.turns = self.turns.saturating_sub(other.turns);
        self.tools.all = self.tools.all.saturating_sub(other.tools.all);
        for (tool, count) in &mut self.tools.each {
            *count = count.saturating_sub(other.tools.of(tool));
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
pub struct EpisodeBalance {
    /// What it took.
    pub spent: EpisodeUsage,
    /// What its open steps have set aside. Where replicas share the accounts, all that others have of a limit, as far as
    /// nobody has written that it was used.
    pub reserved: EpisodeUsage,
}

/// Several names share a bell: who is woken by another's looks again.
const NOTIFIER_SLOTS: usize = 256;

/// Rings when something of a run, or of a tree of accounts, is resolved.
#[derive(Debug)]
pub(super) struct Notifiers(Box<[Notify]>);

impl Notifiers {
    pub(super) fn new() -> Notifiers {
        Notifiers((0..NOTIFIER_SLOTS).map(|_| Notify::new()).collect())
    }

    fn slot(&self, name: &str) -> &Notify {
        let spread = |hash: usize, byte: u8| hash.wrapping_mul(31).wrapping_add(usize::from(byte));
        &self.0[name.bytes().fold(0, spread) % NOTIFIER_SLOTS]
    }

    pub(super) fn notify(&self, name: &str) {
        self.slot(name).notify_waiters();
    }

    /// Hears what rings from now on, polled or not.
    pub(super) fn notified(&self, name: &str) -> Notified<'_> {
        self.slot(name).notified()
    }
}
