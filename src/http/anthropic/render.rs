//! A whole answer of Messages as one object, and its usage.

use serde_json::{Value, json};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::budget;
use crate::http::collected_choice::CollectedChoice;
use stint_types::chat::FinishReason;
use stint_types::units::{RequestId, Tokens};

use super::blocks;
use super::thoughts::AnthropicThoughts;

/// The whole answer as one object.
pub(super) fn message(
    receipt: &RequestReceipt,
    choices: Vec<CollectedChoice>,
    thoughts: AnthropicThoughts,
) -> Value {
    let finish = receipt.choices.first().map_or(FinishReason::Stop, |choice| choice.finish);
    let choice = choices.into_iter().next().unwrap_or_default().without_partial_calls(finish);
    let mut message = empty_message(receipt.id, &receipt.model, &usage(receipt));
    message["content"] = blocks::render_blocks(choice, thoughts).into();
    (message["stop_reason"], message["stop_sequence"]) = stop(receipt);
    message["budget"] = json!(budget(receipt));
    message
}

/// An answer without its content.
pub(super) fn empty_message(id: RequestId, model: &str, usage: &Value) -> Value {
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
pub(super) fn stop(receipt: &RequestReceipt) -> (Value, Value) {
    let choice = receipt.choices.first();
    let by = choice.and_then(|choice| choice.spent.stopped_by.as_deref());
    let reason = match choice.map(|choice| choice.finish) {
        None | Some(FinishReason::Stop) if by.is_some() => "stop_sequence",
        None | Some(FinishReason::Stop) => "end_turn",
        Some(FinishReason::Length) => "max_tokens",
        Some(FinishReason::ToolCalls) => "tool_use",
        Some(FinishReason::ContentFilter) => "refusal",
    };
    (reason.into(), by.into())
}

/// What was read and written. What the provider's cache had is not in `input_tokens`, as Anthropic counts.
pub(super) fn usage(receipt: &RequestReceipt) -> Value {
    let Some(spent) = receipt.choices.first().map(|choice| &choice.spent) else {
        return prompt_usage(Tokens::ZERO);
    };
    let cached = spent.cache_read().min(spent.prompt);
    let mut usage = counted(spent.prompt.saturating_sub(cached), cached, spent.completion());
    usage["output_tokens_details"] = json!({ "thinking_tokens": spent.thinking });
    usage
}

/// Before anything is written: what is to be read.
pub(super) fn prompt_usage(prompt: Tokens) -> Value {
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
