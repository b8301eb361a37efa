//! The two phases of a generation, thinking and solution: their budgets, what tokens count as, how they end.

use std::sync::Arc;

mod machine;
mod spelled_tags;

pub(crate) use machine::{GenerationPhase, PhaseMachine};
pub use spelled_tags::SpelledTags;

/// How many tokens each phase of a generation may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseBudgets {
    /// The thought, for models that think; without it every token is solution.
    pub thinking: Option<ThinkingPhase>,
    /// Tokens of solution, the end-of-text token not counted. At least 1 where the thought is not open yet:
    /// whether the first token opens it is only known once it is there.
    pub solution: u32,
    /// How far the solution may go with what the thought left of its budget: no token of thought and solution together is
    /// more than `budget + solution`. At most `solution` where the two budgets are separate.
    pub solution_max: u32,
}

/// The thought's budget, and what begins and ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingPhase {
    /// Tokens of thought, tags not counted.
    pub budget: u32,
    /// Forced, one per step, once the budget is spent and the thought still open.
    pub hand_off: Vec<u32>,
    /// The token that opens a thought, where there is one.
    pub start: Option<u32>,
    /// The token that closes a thought; one that there is not where it is [spelled](ThinkingPhase::spelled).
    pub end: u32,
    /// Whether the prompt has already opened the thought.
    pub open: bool,
    /// Tokens that are white space alone, in order: as long as nothing else came, a thought may still be opened.
    pub blanks: Arc<[u32]>,
    /// The tags, where the model has no tokens for them.
    pub spelled: Option<SpelledTags>,
}

/// What a token counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRole {
    /// A token of the thought.
    Thought,
    /// White space before it is known whether there is a thought. It has its room in the solution's budget. Where a thought
    /// follows it counts as overhead in the end, else as solution.
    Blank,
    /// A tag that the model sampled.
    Tag,
    /// A token that the engine forced to close the thought.
    HandOff,
    /// A token of the answer.
    Solution,
    /// The end-of-text token.
    End,
}

/// One token of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedToken {
    /// The token.
    pub id: u32,
    /// What it counts as.
    pub role: TokenRole,
}

/// How a thought ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingEnd {
    /// There was none.
    None,
    /// The model closed it before its budget was spent.
    Closed,
    /// Its budget did.
    Cut,
    /// The model ended its text inside the thought; the hand-off took the place of its end.
    Stopped,
}

/// How a solution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SolutionEnd {
    /// The model ended its text.
    Stop,
    /// The budget was spent.
    Length,
}

/// The last word of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationSummary {
    /// How the thought ended.
    pub thinking: ThinkingEnd,
    /// How the solution ended; after a stopped thought, `Stop` with no tokens.
    pub solution: SolutionEnd,
    /// Tokens of thought.
    pub thought_tokens: u32,
    /// Tokens of solution.
    pub solution_tokens: u32,
    /// Tags, white space before a thought, forced tokens and the end-of-text token.
    pub overhead_tokens: u32,
}

impl PhaseBudgets {
    /// Without a thought: every token is solution.
    pub fn without_thinking(solution: u32) -> PhaseBudgets {
        PhaseBudgets { thinking: None, solution, solution_max: solution }
    }

    /// How many tokens of solution there may be after so many of thought.
    pub(crate) fn solution_after(&self, thought: u32) -> u32 {
        let budget = self.thinking.as_ref().map_or(0, |thinking| thinking.budget);
        let left = budget.saturating_sub(thought);
        self.solution.saturating_add(left).min(self.solution_max.max(self.solution))
    }

    /// The most tokens that a generation can emit.
    #[must_use]
    pub fn tokens_max(&self) -> u64 {
        let thinking = self.thinking.as_ref().map_or(0, |thinking| {
            // A thought that closes itself has its tag where the hand-off would be.
            let closing = (thinking.hand_off.len() as u64).max(u64::from(thinking.budget > 0));
            u64::from(!thinking.open) + u64::from(thinking.budget) + closing
        });
        thinking + u64::from(self.solution)
    }
}
