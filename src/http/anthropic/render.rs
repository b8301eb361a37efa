//! A whole answer of Messages as one object, and its usage.

use serde_json::{Value, json};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::budget;
use crate::http::collected_choice::CollectedChoice;
use crate::http::provider_members;
use stint_types::catalog::{PromptCacheUsage, SolutionStopReason};
use stint_types::chat::{AnswerApi, AnswerNote, ChoiceEvent, CommentaryPlace, FinishReason};
use stint_types::units::{RequestId, Tokens};

use super::blocks;
use super::thoughts::AnthropicThoughts;

/// The whole answer as one object.
pub(super) fn message(
    receipt: &RequestReceipt,
    choices: Vec<CollectedChoice>,
    thoughts: AnthropicThoughts,
    commentary: CommentaryPlace,
) -> Value {
    let finish = receipt.choices.first().map_or(FinishReason::Stop, |choice| choice.finish);
    let choice = choices.into_iter().next().unwrap_or_default().without_partial_calls(finish);
    let mut message = empty_message(receipt.id, &receipt.model, &usage(receipt));
    let mut refusal = None;
    choice.events().iter().for_each(|event| note_refusal(&mut refusal, event));
    message["content"] = blocks::render_blocks(choice.with_commentary(commentary), thoughts).into();
    add_members(&mut message, stop(receipt, refusal.as_ref()));
    message["budget"] = json!(budget(receipt));
    provider_members::add(&mut message, provider_members::of_answer(receipt, AnswerApi::Messages));
    message
}

/// Replaces members of an object.
pub(super) fn add_members(object: &mut Value, members: Value) {
    if let (Value::Object(object), Value::Object(members)) = (object, members) {
        object.extend(members);
    }
}

/// That a model declines, and why, where that is said.
pub(super) type ToldRefusal = Option<Box<str>>;

/// Notes that a model declines, where an event says so.
pub(super) fn note_refusal(refusal: &mut Option<ToldRefusal>, event: &ChoiceEvent) {
    match event {
        ChoiceEvent::Note(AnswerNote::Refusal) => drop(refusal.get_or_insert_default()),
        ChoiceEvent::Note(AnswerNote::Declined(why)) => *refusal = Some(why.clone()),
        _ => {}
    }
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
        "stop_details": null,
        "usage": usage,
    })
}

/// Why it ended, and the stop text that ended it, where one did and it is known. That a model declined stands here too.
pub(super) fn stop(receipt: &RequestReceipt, refusal: Option<&ToldRefusal>) -> Value {
    let choice = receipt.choices.first();
    let by = choice.and_then(|choice| choice.spent.stopped_by.as_deref());
    let own = choice.and_then(|choice| provider_members::of_choice(choice, AnswerApi::Messages));
    let mut own = own.map(|members| members.choice.clone()).unwrap_or_default();
    let own_reason = own.shift_remove("stop_reason");
    let reason = match choice.map(|choice| choice.finish) {
        None | Some(FinishReason::Stop) if by.is_some() => "stop_sequence".into(),
        Some(FinishReason::Stop) if refusal.is_some() => "refusal".into(),
        None | Some(FinishReason::Stop) => "end_turn".into(),
        Some(FinishReason::Length) if is_cut_by_provider(receipt) && own_reason.is_some() => {
            own_reason.unwrap_or_default()
        }
        Some(FinishReason::Length) => "max_tokens".into(),
        Some(FinishReason::ToolCalls) => "tool_use".into(),
        Some(FinishReason::ContentFilter) => Value::from("refusal"),
    };
    let details = (reason == "refusal").then(|| {
        let why = refusal.and_then(Option::as_deref);
        own.shift_remove("stop_details").unwrap_or_else(|| stop_details(why))
    });
    let mut stop = json!({ "stop_reason": reason, "stop_sequence": by, "stop_details": details });
    own.shift_remove("stop_details");
    provider_members::add(&mut stop, own);
    stop
}

/// True if not a limit of ours ended the answer.
fn is_cut_by_provider(receipt: &RequestReceipt) -> bool {
    let ended = receipt.choices.first().map(|choice| choice.spent.solution_ended);
    matches!(ended, Some(SolutionStopReason::Model | SolutionStopReason::Upstream))
}

/// That a model declined, where its provider has another API.
fn stop_details(why: Option<&str>) -> Value {
    json!({ "type": "refusal", "category": null, "explanation": why })
}

/// What was read and written. What the provider's cache had, and what was put there, is not in `input_tokens`, as Anthropic
/// counts.
pub(super) fn usage(receipt: &RequestReceipt) -> Value {
    let Some(spent) = receipt.choices.first().map(|choice| &choice.spent) else {
        return prompt_usage(Tokens::ZERO);
    };
    let mut usage = counted(spent.prompt_cache(), spent.completion());
    usage["output_tokens_details"] = json!({ "thinking_tokens": spent.thinking });
    provider_members::add(&mut usage, provider_members::of_usage(receipt, AnswerApi::Messages));
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
