//! The events of an execution, as its caller sees them.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::SignedThought;

/// Why an answer ended, in OpenAI's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model was done, or one of the caller's stop texts came.
    Stop,
    /// The solution budget ran out.
    Length,
    /// The model wants tools to be called.
    ToolCalls,
    /// The upstream withheld the answer.
    ContentFilter,
}

impl FinishReason {
    /// The value of `finish_reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::ContentFilter => "content_filter",
        }
    }
}

/// A piece of a tool call; pieces with one index are one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// Which call of this answer.
    pub index: u32,
    /// Its id, in the first piece.
    pub id: Option<String>,
    /// The tool's name, in the first piece.
    pub name: Option<String>,
    /// More of its arguments.
    pub arguments: String,
}

impl ToolCallDelta {
    /// True if it says nothing: neither id nor name, and blank alone.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.id.is_none() && self.name.is_none() && self.arguments.trim().is_empty()
    }
}

/// True once the arguments of a call are whole.
pub fn is_complete_json(arguments: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// What an upstream says of an answer besides its text.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerNote {
    /// The text of the answer from here on is a refusal: the model declines, in its own words.
    Refusal,
    /// Another message of the answer begins, which is for this: OpenAI's `commentary` or `final_answer`.
    Phase(Box<str>),
    /// A source of the text, as chat completions have it in `annotations`. Its places count characters of all of the answer.
    Annotation(Value),
    /// Its provider withholds the rest, since the model declines; and why, where it says so.
    Declined(Option<Box<str>>),
    /// A picture that the model made, as chat completions have it in `images`.
    Image(Value),
    /// More of the sound that the model made, as chat completions have it in `audio`.
    Audio(Value),
}

/// What happens to one choice, in order. An answer's end is reported after it is settled, by the request's task.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceEvent {
    /// More of the thought.
    Thought(String),
    /// A part of the thought that is to be sent back as it is.
    Signed(SignedThought),
    /// More of the answer.
    Answer(String),
    /// The chances of the answer's next tokens, in OpenAI's form; before their text.
    Logprobs(Vec<Value>),
    /// What is said of the answer besides its text; where it concerns text, before that.
    Note(AnswerNote),
    /// More of a tool call.
    ToolCall(ToolCallDelta),
}
