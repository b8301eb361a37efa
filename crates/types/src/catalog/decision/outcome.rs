//! The outcome of a decision, and the verdicts on the answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::models::EnforcementClass;
use crate::units::{Chance, Money, RequestId, Timestamp, Tokens};

use super::usage::{ChoiceUsage, SolutionStopReason, ThinkingStopReason};

/// What came of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionOutcome {
    /// When it was settled.
    pub at: Timestamp,
    /// How it ended: `finished`, `emptied` (nothing passed of what the model wrote), `failed` or `hung_up`.
    pub ended: Arc<str>,
    /// What failed, in one word, where it failed.
    pub error: Option<Arc<str>>,
    /// Who did it in the end.
    pub model: Arc<str>,
    /// How the budgets were held.
    pub enforced: EnforcementClass,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The solution budget of each choice.
    pub solution: Tokens,
    /// How long thoughts usually are at the word of effort that was sent, in those at the model's usual one ("high"); absent where no
    /// word of its scale was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<f64>,
    /// Each choice, in order.
    pub choices: Vec<ChoiceOutcome>,
    /// What it cost, everything included.
    pub cost: Money,
    /// True if the books have something else, or nothing yet: that cost is reported to nobody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unbooked: bool,
    /// The most that was set aside for it.
    pub reserved: Money,
    /// Attempts that were given up before the last one.
    pub attempts: u32,
    /// All tokens of those attempts.
    pub given_up: Tokens,
    /// True if it was not the chosen model that did it.
    pub fell_back: bool,
    /// From its arrival to its settled end.
    pub seconds: f64,
    /// From its arrival to the first token, of thought or answer.
    pub first_token: Option<f64>,
    /// From its arrival to the first token of the answer.
    pub first_answer: Option<f64>,
}

/// What one choice took, phase by phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChoiceOutcome {
    /// The caller's prompt, once.
    pub prompt: Tokens,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// How the thought ended.
    pub thinking_ended: ThinkingStopReason,
    /// Solution tokens.
    pub solution: Tokens,
    /// How the answer ended.
    pub solution_ended: SolutionStopReason,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// What was billed and not delivered: prompts read again, discarded tokens.
    pub other: Tokens,
    /// True if an empty answer was tried again with the least thinking.
    pub rescued: bool,
    /// How often the answer spoke like a thought that goes on.
    pub leaks: u32,
    /// True if the backend's own budget did not hold.
    pub overran: bool,
    /// True if a count was reckoned rather than reported.
    pub estimated: bool,
}

impl ChoiceOutcome {
    /// What a choice took.
    pub fn new(spent: &ChoiceUsage, rescued: bool) -> ChoiceOutcome {
        ChoiceOutcome {
            prompt: spent.prompt,
            thinking: spent.thinking,
            thinking_ended: spent.thinking_ended,
            solution: spent.solution,
            solution_ended: spent.solution_ended,
            overhead: spent.overhead,
            other: spent.prompt_rebilled + spent.undelivered,
            rescued,
            leaks: spent.leaks,
            overran: spent.overran,
            estimated: spent.estimated,
        }
    }
}

impl DecisionOutcome {
    /// True if there is a whole answer.
    pub fn is_finished(&self) -> bool {
        &*self.ended == "finished"
    }
}

/// Who says something of an answer. Of each there is one word at most on one answer: a later one replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictSource {
    /// The caller: right or wrong, or a score.
    Feedback,
    /// The caller, who liked it better or less than another answer.
    Preference,
    /// An operator's verifier.
    Verifier,
    /// The agreement of several answers.
    Vote,
    /// The tool calls in it, held against the tools' own schemas.
    ToolArguments,
    /// Its form, held against the one that was asked for.
    Form,
    /// The same caller, who asked the same again soon after.
    AskedAgain,
    /// Its end: an answer that ran out of room, needed a second try, or went on thinking.
    Ending,
}

impl VerdictSource {
    /// Every source.
    pub const ALL: [VerdictSource; 8] = [
        VerdictSource::Feedback,
        VerdictSource::Preference,
        VerdictSource::Verifier,
        VerdictSource::Vote,
        VerdictSource::ToolArguments,
        VerdictSource::Form,
        VerdictSource::AskedAgain,
        VerdictSource::Ending,
    ];

    /// What a word of a person weighs before any limit; none for what needs no person, whose weights differ.
    pub fn word_weight(self) -> Option<f64> {
        match self {
            VerdictSource::Feedback => Some(1.0),
            // It does not say which of the two is right.
            VerdictSource::Preference => Some(0.3),
            VerdictSource::Verifier
            | VerdictSource::Vote
            | VerdictSource::ToolArguments
            | VerdictSource::Form
            | VerdictSource::AskedAgain
            | VerdictSource::Ending => None,
        }
    }

    /// The word for it in the log, the store and `/v1/requests/{id}`.
    pub fn as_str(self) -> &'static str {
        match self {
            VerdictSource::Feedback => "feedback",
            VerdictSource::Preference => "preference",
            VerdictSource::Verifier => "verifier",
            VerdictSource::Vote => "vote",
            VerdictSource::ToolArguments => "tool_arguments",
            VerdictSource::Form => "form",
            VerdictSource::AskedAgain => "asked_again",
            VerdictSource::Ending => "ending",
        }
    }
}

/// What somebody says of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The request that was answered.
    pub id: RequestId,
    /// Who says it.
    pub source: VerdictSource,
    /// When.
    pub at: Timestamp,
    /// How right it is.
    pub success: Chance,
    /// How much that counts; a person's plain word is 1.
    pub weight: f64,
}
