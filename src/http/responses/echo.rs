//! The response object: what it repeats of the request, and the rest around it.

use serde_json::{Map, Value, json};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::budget;
use crate::http::provider_members;
use stint_types::catalog::ChoiceUsage;
use stint_types::chat::{AnswerApi, FinishReason};
use stint_types::units::{RequestId, Timestamp, Tokens};

use super::id::response_id;
use super::tool_set::OmittedTools;
use super::tools;

/// Members that are repeated as they were sent, null where they were not.
const REPEATED: &[&str] = &[
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "safety_identifier",
];

/// Numbers that are always told, with what stands where nothing was said.
const NUMBERS: &[(&str, f64)] =
    &[("temperature", 1.0), ("top_p", 1.0), ("presence_penalty", 0.0), ("frequency_penalty", 0.0)];

/// What a response repeats of its request's body.
pub(super) fn request_members(members: &Map<String, Value>) -> Map<String, Value> {
    let sent = |key: &str| members.get(key).filter(|value| !value.is_null()).cloned();
    let mut echo: Map<String, Value> =
        REPEATED.iter().map(|&key| (key.to_owned(), sent(key).unwrap_or_default())).collect();
    echo.extend(
        NUMBERS.iter().map(|&(key, usual)| (key.to_owned(), sent(key).unwrap_or_else(|| usual.into()))),
    );
    echo.insert("top_logprobs".to_owned(), sent("top_logprobs").unwrap_or_else(|| 0.into()));
    echo.extend(sent("user").map(|user| ("user".to_owned(), user)));
    let text = sent("text").unwrap_or_else(|| json!({}));
    let format = text.get("format").filter(|format| !format.is_null()).cloned();
    let mut shown = json!({ "format": format.unwrap_or_else(|| json!({ "type": "text" })) });
    if let Some(verbosity) = text.get("verbosity").filter(|verbosity| !verbosity.is_null()) {
        shown["verbosity"] = verbosity.clone();
    }
    let reasoning = sent("reasoning").unwrap_or_else(|| json!({}));
    let summary = reasoning.get("summary").cloned().unwrap_or_default();
    let effort = reasoning.get("effort").cloned().unwrap_or_default();
    let conversation = match sent("conversation") {
        Some(Value::String(id)) => json!({ "id": id }),
        other => other.unwrap_or_default(),
    };
    for (key, value) in [
        ("conversation", conversation),
        ("metadata", sent("metadata").unwrap_or_else(|| json!({}))),
        ("parallel_tool_calls", sent("parallel_tool_calls").unwrap_or(Value::Bool(true))),
        ("reasoning", json!({ "effort": effort, "summary": summary })),
        ("text", shown),
        ("tool_choice", sent("tool_choice").unwrap_or_else(|| "auto".into())),
        ("tools", shown_tools(sent("tools"))),
    ] {
        echo.insert(key.to_owned(), value);
    }
    echo
}

/// The tools that models know.
fn shown_tools(tools: Option<Value>) -> Value {
    let mut tools = tools.unwrap_or_else(|| json!([]));
    if let Some(list) = tools.as_array_mut() {
        list.retain(|tool| !tools::is_omitted(tool));
        for function in
            list.iter_mut().filter(|tool| tool["type"] == "function").filter_map(Value::as_object_mut)
        {
            function.entry("strict").or_insert(Value::Null);
        }
    }
    tools
}

/// A response that has not ended.
pub(super) fn in_progress(
    id: RequestId,
    created: Timestamp,
    model: &str,
    store: bool,
    echo: &Map<String, Value>,
) -> Value {
    let mut frame = json!({
        "id": response_id(id),
        "object": "response",
        "created_at": created.as_seconds(),
        "status": "in_progress",
        "background": false,
        "completed_at": null,
        "error": null,
        "incomplete_details": null,
        "model": model,
        "output": [],
        "service_tier": "default",
        "store": store,
        "truncation": "disabled",
        "usage": null,
    });
    if let Some(members) = frame.as_object_mut() {
        members.extend(echo.clone());
    }
    frame
}

/// The same, ended.
pub(super) fn finished(
    mut frame: Value,
    receipt: &RequestReceipt,
    output: Vec<Value>,
    omitted: &OmittedTools,
    now: Timestamp,
) -> Value {
    let status = status(receipt);
    frame["status"] = status.into();
    match status {
        "completed" => frame["completed_at"] = now.as_seconds().into(),
        _ => frame["incomplete_details"] = json!({ "reason": reason(receipt) }),
    }
    frame["model"] = (*receipt.model).into();
    frame["output"] = output.into();
    frame["usage"] = usage(receipt);
    let mut answer_members = provider_members::of_answer(receipt, AnswerApi::Responses);
    if let Some(tier) = answer_members.shift_remove("service_tier") {
        frame["service_tier"] = tier;
    }
    frame["budget"] = json!(budget(receipt));
    let omitted: Vec<&str> = omitted.kinds().collect();
    if !omitted.is_empty() {
        frame["budget"]["omitted_tools"] = omitted.into();
    }
    frame
}

/// What a request for nothing but a compaction is answered with.
pub(super) fn compacted(receipt: &RequestReceipt, created: Timestamp, output: &[Value]) -> Value {
    json!({
        "id": response_id(receipt.id),
        "object": "response.compaction",
        "created_at": created.as_seconds(),
        "output": output,
        "usage": usage(receipt),
        "budget": budget(receipt),
    })
}

/// Whether the answer is whole.
pub(super) fn status(receipt: &RequestReceipt) -> &'static str {
    match receipt.choices.first().map(|choice| choice.finish) {
        Some(FinishReason::Length | FinishReason::ContentFilter) => "incomplete",
        None | Some(FinishReason::Stop | FinishReason::ToolCalls) => "completed",
    }
}

fn reason(receipt: &RequestReceipt) -> &'static str {
    match receipt.choices.first().map(|choice| choice.finish) {
        Some(FinishReason::ContentFilter) => "content_filter",
        _ => "max_output_tokens",
    }
}

fn usage(receipt: &RequestReceipt) -> Value {
    let spent = receipt.choices.first().map(|choice| &choice.spent);
    let count = |of: fn(&ChoiceUsage) -> Tokens| spent.map_or(Tokens::ZERO, of);
    let (input, output) = (count(|spent| spent.prompt), count(ChoiceUsage::completion));
    let cache = spent.map(ChoiceUsage::prompt_cache).unwrap_or_default();
    let mut usage = json!({
        "input_tokens": input,
        "input_tokens_details":
            { "cached_tokens": cache.read, "cache_write_tokens": cache.write },
        "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": count(|spent| spent.thinking) },
        "total_tokens": input + output,
    });
    provider_members::add(&mut usage, provider_members::of_usage(receipt, AnswerApi::Responses));
    usage
}
