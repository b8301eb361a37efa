//! Answers and usage out, as one object.

use serde_json::{Value, json};

use crate::chat::Finish;
use crate::gateway::Receipt;
use crate::http::openai::budget;
use crate::http::said::Said;
use crate::units::{RequestId, Tokens};

use super::blocks;

/// What is told of thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Thoughts {
    /// Nothing.
    Hidden,
    /// What their provider signed, so that they can be sent back, and not their text.
    Sealed,
    /// All.
    Shown,
}

/// How the answer is to look.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Look {
    /// Thoughts beside the answer.
    pub(in crate::http) thoughts: Thoughts,
}

/// The whole answer as one object.
pub(in crate::http) fn message(receipt: &Receipt, said: Vec<Said>, look: Look) -> Value {
    let finish = receipt.choices.first().map_or(Finish::Stop, |choice| choice.finish);
    let said = said.into_iter().next().unwrap_or_default().finished(finish);
    let mut message = frame(receipt.id, &receipt.model, &usage(receipt));
    message["content"] = blocks::of(said, look.thoughts).into();
    (message["stop_reason"], message["stop_sequence"]) = stop(receipt);
    message["budget"] = budget(receipt);
    message
}

/// An answer without its content.
pub(super) fn frame(id: RequestId, model: &str, usage: &Value) -> Value {
    json!({
        "id": id.to_string().replacen("req_", "msg_", 1),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

/// Why it ended, and the stop text that ended it, where one did and it is known.
pub(super) fn stop(receipt: &Receipt) -> (Value, Value) {
    let choice = receipt.choices.first();
    let by = choice.and_then(|choice| choice.spent.stopped_by.as_deref());
    let reason = match choice.map(|choice| choice.finish) {
        None | Some(Finish::Stop) if by.is_some() => "stop_sequence",
        None | Some(Finish::Stop) => "end_turn",
        Some(Finish::Length) => "max_tokens",
        Some(Finish::ToolCalls) => "tool_use",
        Some(Finish::ContentFilter) => "refusal",
    };
    (reason.into(), by.into())
}

/// What was read and written. What the provider's cache had is not in `input_tokens`, as Anthropic counts.
pub(super) fn usage(receipt: &Receipt) -> Value {
    let Some(spent) = receipt.choices.first().map(|choice| &choice.spent) else { return read(Tokens::ZERO) };
    let cached = spent.cache_read().min(spent.prompt);
    let mut usage = counted(spent.prompt.saturating_sub(cached), cached, spent.completion());
    usage["output_tokens_details"] = json!({ "thinking_tokens": spent.thinking });
    usage
}

/// Before anything is written: what is to be read.
pub(super) fn read(prompt: Tokens) -> Value {
    counted(prompt, Tokens::ZERO, Tokens::ZERO)
}

fn counted(input: Tokens, cached: Tokens, output: Tokens) -> Value {
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output,
    })
}
