//! A whole answer of Messages as one object, and its usage.

use serde_json::{Value, json};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::budget;
use crate::http::collected_choice::CollectedChoice;
use stint_types::catalog::PromptCacheUsage;
use stint_types::chat::{AnswerNote, ChoiceEvent, FinishReason};
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
    let refuses = choice.events().contains(&ChoiceEvent::Note(AnswerNote::Refusal));
    message["content"] = blocks::render_blocks(choice, thoughts).into();
    (message["stop_reason"], message["stop_sequence"]) = stop(receipt, refuses);
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

/// Why it ended, and the stop text that ended it, where one did and it is known. That a model declined stands here too.
pub(super) fn stop(receipt: &RequestReceipt, refuses: bool) -> (Value, Value) {
    let choice = receipt.choices.first();
    let by = choice.and_then(|choice| choice.spent.stopped_by.as_deref());
    let reason = match choice.map(|choice| choice.finish) {
        None | Some(FinishReason::Stop) if by.is_some() => "stop_sequence",
        Some(FinishReason::Stop) if refuses => "refusal",
        None | Some(FinishReason::Stop) => "end_turn",
        Some(FinishReason::Length) => "max_tokens",
        Some(FinishReason::ToolCalls) => "tool_use",
        Some(FinishReason::ContentFilter) => "refusal",
    };
    (reason.into(), by.into())
}

/// What was read and written. What the provider's cache had, and what was put there, is not in `input_tokens`, as Anthropic
/// counts.
pub(super) fn usage(receipt: &RequestReceipt) -> Value {
    let Some(spent) = receipt.choices.first().map(|choice| &choice.spent) else {
        return prompt_usage(Tokens::ZERO);
    };
    let mut usage = counted(spent.prompt_cache(), spent.completion());
    usage["output_tokens_details"] = json!({ "thinking_tokens": spent.thinking });
    usage
}

/// Before anything is written: what is to be read. For how long which part of it is kept is not known yet, and SDKs read that
/// nowhere else.
pub(super) fn prompt_usage(prompt: Tokens) -> Value {
    let mut usage = counted(PromptCacheUsage { fresh: prompt, ..PromptCacheUsage::default() }, Tokens::ZERO);
    usage["cache_creation"] = Value::Null;
    usage
}

fn counted(prompt: PromptCacheUsage, output: Tokens) -> Value {
    let PromptCacheUsage { fresh, read, write, hour } = prompt;
    json!({
        "input_tokens": fresh,
        "cache_creation_input_tokens": write,
        "cache_creation": {
            "ephemeral_5m_input_tokens": write.saturating_sub(hour), "ephemeral_1h_input_tokens": hour,
        },
        "cache_read_input_tokens": read,
        "output_tokens": output,
    })
}
