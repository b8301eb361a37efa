//! How a run stands.

use crate::chat::ToolCounts;
use crate::units::{Count, Money, Tokens};

use super::History;

/// What a run has taken, or set aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetUsage {
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
pub struct BudgetState {
    /// What is spent for good.
    pub spent: BudgetUsage,
    /// What steps that run now have set aside beside it; they give back what they do not use.
    pub reserved: BudgetUsage,
}

impl BudgetState {
    /// The same where the client's own history tells of more.
    #[must_use]
    pub fn tightened_by(&self, history: &History) -> BudgetState {
        let mut standing = self.clone();
        let spent = &mut standing.spent;
        spent.turns = spent.turns.max(history.turns);
        spent.tools.all = spent.tools.all.max(history.tools.all);
        for (tool, count) in &history.tools.each {
            let mine = spent.tools.each.entry(tool.clone()).or_default();
            *mine = (*mine).max(*count);
        }
        standing
    }
}
