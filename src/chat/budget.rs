//! What a caller says about budgets.

use std::time::Duration;

use crate::units::{Count, Effort, EpisodeId, Money, Preference, Tokens};

use super::EpisodeLimits;

/// How deep to think, for a caller who does not count tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Depth {
    /// The share of the model's usual thinking.
    pub effort: Effort,
    /// The word that the caller used for it, if it was a word: upstreams with efforts are given it back.
    pub word: Option<String>,
}

/// The limits that a caller stated for one request. Absent members leave the choice to the plan. Token
/// members hold for each choice, money and deadline for the whole request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    /// Thinking tokens: stated, it *is* the budget; 0 is no thinking.
    pub thinking: Option<Tokens>,
    /// Solution tokens.
    pub solution: Option<Tokens>,
    /// Thinking, hand-off and solution together (`max_completion_tokens`).
    pub total: Option<Tokens>,
    /// The most that the request may cost.
    pub cost: Option<Money>,
    /// When the whole answer must be there, counted from the request's arrival.
    pub deadline: Option<Duration>,
    /// How deep to think.
    pub depth: Option<Depth>,
    /// Success against cost.
    pub preference: Option<Preference>,
    /// The most tool calls of this one answer (`max_tool_calls`).
    pub calls: Option<Count>,
    /// The run that the request belongs to, where the caller names it.
    pub episode: Option<EpisodeId>,
    /// What that whole run may take, or, where it has no name, the run that the request turns out to belong to.
    pub run: EpisodeLimits,
}
