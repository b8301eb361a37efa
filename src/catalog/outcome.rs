//! What came of an execution.

use serde::Serialize;

use crate::units::Tokens;

/// How a thought ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// There was none.
    #[default]
    None,
    /// The model closed it.
    Closed,
    /// The budget ran out, and the hand-off closed it.
    Cut,
    /// The model ended its text without closing it.
    Stopped,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SolutionEnded {
    /// It did not begin, or was broken off.
    #[default]
    None,
    /// The model was done.
    Stop,
    /// The solution budget ran out.
    Length,
}

/// What one choice really took, to the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Thinking tokens: neither tags nor hand-off nor end of text.
    pub thinking: Tokens,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// How much of the overhead was sent to the model rather than written by it: a hand-off in a second
    /// prompt, already billed as part of that.
    pub injected: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// The caller's prompt, once.
    pub prompt: Tokens,
    /// Prompt tokens that were billed again (a second phase, a retry).
    pub prompt_again: Tokens,
    /// Output tokens of what was not delivered (failed attempts, discarded tokens).
    pub other: Tokens,
    /// How many of those were thought.
    pub other_thinking: Tokens,
    /// How many calls were made beyond the first.
    pub other_attempts: u32,
    /// True where a count was reckoned rather than reported.
    pub estimated: bool,
    /// How the thought ended.
    pub thinking_ended: Ended,
    /// How the answer ended.
    pub solution_ended: SolutionEnded,
}

impl Spent {
    /// What the caller is told as `completion_tokens`.
    pub fn completion(&self) -> Tokens {
        self.thinking + self.overhead + self.solution
    }

    /// Everything thought, delivered or not: what limits on thinking count.
    pub fn thought(&self) -> Tokens {
        self.thinking + self.other_thinking
    }

    /// Everything read, as billed.
    pub fn input(&self) -> Tokens {
        self.prompt + self.prompt_again
    }

    /// Everything written, as billed.
    pub fn output(&self) -> Tokens {
        self.completion().saturating_sub(self.injected) + self.other
    }
}
