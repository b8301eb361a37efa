//! Pieces whose tokens the upstream does not report one by one, and what it reports that the gateway does not count.

use serde_json::{Map, Value};

use crate::{GenerationEnd, Piece};
use stint_types::chat::AnswerNote;
use stint_types::units::Tokens;

/// More of the thought.
pub(super) fn thought(text: impl Into<String>) -> Piece {
    Piece::Thought { text: text.into(), tokens: Tokens::ZERO, ids: Vec::new() }
}

/// More of the answer.
pub(super) fn answer(text: impl Into<String>) -> Piece {
    Piece::Answer { text: text.into(), tokens: Tokens::ZERO }
}

/// The note that a refusal begins, the first time that it is asked for.
pub(super) fn refusal_begins(refuses: &mut bool) -> Option<Piece> {
    (!std::mem::replace(refuses, true)).then_some(Piece::Note(AnswerNote::Refusal))
}

/// The model ended its text; whether the end-of-text token is counted, these upstreams do not say.
pub(super) fn stop() -> GenerationEnd {
    GenerationEnd::Stop { tokens: Tokens::ZERO }
}

/// The counts of OpenAI's APIs that the gateway reads, and says itself.
const COUNTED: [&str; 6] = [
    "prompt_tokens",
    "completion_tokens",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "reasoning_tokens",
];

/// The same within their details.
const COUNTED_DETAILS: [&str; 4] =
    ["cached_tokens", "cache_write_tokens", "cache_creation_input_tokens", "reasoning_tokens"];

/// What of a usage the gateway does not say itself.
pub(super) fn uncounted(mut usage: Map<String, Value>) -> Map<String, Value> {
    usage.retain(|name, value| {
        if let Value::Object(details) = value
            && name.ends_with("_tokens_details")
        {
            details.retain(|name, count| !COUNTED_DETAILS.contains(&name.as_str()) && !count.is_null());
            return !details.is_empty();
        }
        !COUNTED.contains(&name.as_str()) && !value.is_null()
    });
    usage
}
