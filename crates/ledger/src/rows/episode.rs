//! Episodes (whole runs of agents): what one step reserves, what an episode used, and how it stands.

use stint_types::chat::{EpisodeLimits, ToolCounts};
use stint_types::units::{Count, Money, Tokens};

use super::amounts::Amounts;

/// What a request reserves as one step of an episode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepReservation {
    /// What the whole episode may take. The ledger remembers it; a later step can only lower it.
    pub limits: EpisodeLimits,
    /// The tool calls that are reserved.
    pub tools: ToolCounts,
    /// What those cost at most. It is part of the worst case's money.
    pub tools_cost: Money,
}

/// What an episode used, or has reserved.
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
    pub(crate) fn beyond(mut self, other: &EpisodeUsage) -> EpisodeUsage {
        self.cost = self.cost.saturating_sub(other.cost);
        self.thinking = self.thinking.saturating_sub(other.thinking);
        self.turns = self.turns.saturating_sub(other.turns);
        self.tools.all = self.tools.all.saturating_sub(other.tools.all);
        for (tool, count) in &mut self.tools.each {
            *count = count.saturating_sub(other.tools.of(tool));
        }
        self
    }

    /// Adds what one of its steps used.
    pub fn add(&mut self, spent: Amounts, tools: &ToolCounts) {
        self.cost += spent.money;
        self.thinking += spent.thinking;
        self.turns += spent.requests;
        self.tools.all += spent.tool_calls;
        for (tool, count) in &tools.each {
            *self.tools.each.entry(tool.clone()).or_default() += *count;
        }
    }
}

/// How an episode stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeBalance {
    /// What it used.
    pub spent: EpisodeUsage,
    /// What its open steps have reserved. Where replicas share the accounts, this includes what others hold of a limit
    /// and the journal does not show as used.
    pub reserved: EpisodeUsage,
}
