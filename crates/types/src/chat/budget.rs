//! The budgets that a caller states.

use std::time::Duration;

use crate::units::{Count, Effort, EpisodeId, Money, Preference, Tokens};

use super::EpisodeLimits;

/// How deep to think, for a caller who does not count tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasoningEffort {
    /// The share of the model's usual thinking.
    pub effort: Effort,
    /// The word that the caller used for it, if it was a word: upstreams with efforts are given it back.
    pub word: Option<String>,
}

/// What the members are called that speak of budgets, in the API that a request came in by: reasons for a decision, and
/// what to change, use these words. Of several members that say one thing it is the one that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberNames {
    /// A number of thinking tokens.
    pub thinking: &'static str,
    /// A number of solution tokens.
    pub solution: &'static str,
    /// Thought and answer together.
    pub total: &'static str,
    /// How deep to think.
    pub reasoning_effort: &'static str,
    /// What the model is to read.
    pub prompt: &'static str,
    /// The most that it may cost.
    pub cost: &'static str,
    /// When the answer must be there.
    pub deadline: &'static str,
    /// The form that the answer must have.
    pub response_format: &'static str,
    /// The chances of its tokens.
    pub logprobs: &'static str,
}

/// Those of chat completions.
impl Default for MemberNames {
    fn default() -> MemberNames {
        MemberNames {
            thinking: "budget.thinking_tokens",
            solution: "budget.solution_tokens",
            total: "max_completion_tokens",
            reasoning_effort: "reasoning_effort",
            prompt: "messages",
            cost: "budget.cost_usd",
            deadline: "budget.deadline_ms",
            response_format: "response_format",
            logprobs: "logprobs",
        }
    }
}

/// What a model reads that its whole task may take: everything that it thinks and writes, and what its tools bring. Nobody holds
/// it to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBudget {
    /// All of it.
    pub total: Tokens,
    /// What is left of it, where the caller counted: of a conversation that was shortened.
    pub remaining: Option<Tokens>,
}

/// The limits that a caller stated for one request. Absent members leave the choice to the plan. Token
/// members hold for each choice, money and deadline for the whole request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    /// Thinking tokens: stated, it *is* the budget; 0 is no thinking.
    pub thinking: Option<Tokens>,
    /// Solution tokens.
    pub solution: Option<Tokens>,
    /// Thinking, hand-off and solution together.
    pub total: Option<Tokens>,
    /// The most that the request may cost.
    pub cost: Option<Money>,
    /// When the whole answer must be there, counted from the request's arrival.
    pub deadline: Option<Duration>,
    /// How deep to think.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Success against cost.
    pub preference: Option<Preference>,
    /// The most tool calls of this one answer (`max_tool_calls`).
    pub tool_calls_max: Option<Count>,
    /// The run that the request belongs to, where the caller names it.
    pub episode: Option<EpisodeId>,
    /// What that whole run may take, or, where it has no name, the run that the request turns out to belong to.
    pub episode_limits: EpisodeLimits,
    /// What the model is told of the whole task, where its provider has a way to.
    pub task: Option<TaskBudget>,
    /// What the caller calls these.
    pub members: MemberNames,
}
