//! Our calls as llama.cpp's JSON.

use serde_json::{Map, Value, json};

use crate::remote::passthrough;
use crate::remote::wire::{messages, sampling_members};
use crate::{BackendCall, Thought, tool_calls};
use stint_types::chat::Request;
use stint_types::units::Tokens;

use super::Settings;

/// What `/apply-template` renders.
pub(super) fn template_body(settings: &Settings, request: &Request, thinking: bool) -> Value {
    let mut body = json!({"messages": messages(&request.messages, true)});
    if tool_calls::offers_tools(request) {
        body["tools"] = request.tools.iter().map(|tool| tool.declaration.clone()).collect();
    }
    let mut arguments = passthrough::template_arguments(request, &settings.client.members);
    if !thinking {
        arguments.insert("enable_thinking".to_owned(), json!(false));
    }
    if !arguments.is_empty() {
        body["chat_template_kwargs"] = arguments.into();
    }
    body
}

/// True if the prompt ends inside a thought.
pub(super) fn opens_thought(settings: &Settings, prompt: &str) -> bool {
    prompt.trim_end().ends_with(&settings.start_tag)
}

/// The prompt, with a thought opened at its end: on a line of its own where the hand-off closes it on one.
pub(super) fn with_open_thought(settings: &Settings, mut prompt: String) -> String {
    if !opens_thought(settings, &prompt) {
        prompt.push_str(&settings.start_tag);
        prompt.push_str(if settings.hand_off.starts_with('\n') { "\n" } else { "" });
    }
    prompt
}

/// True if the hand-off stands behind a thought. One that begins with the tag does so behind every thought: in Harmony
/// the answer is a message of its own.
pub(super) fn needs_hand_off(settings: &Settings, thought: &Thought) -> bool {
    !thought.closed || settings.hand_off.starts_with(&settings.end_tag)
}

/// The prompt of the second phase: text and token ids mixed, so that nothing is tokenized otherwise than it
/// was generated. Without ids it is one text, since the server takes a list of nothing but texts for as many
/// prompts.
pub(super) fn resumed_prompt(settings: &Settings, prompt: &str, thought: &Thought) -> Value {
    let close = if needs_hand_off(settings, thought) { &settings.hand_off } else { &settings.end_tag };
    if thought.ids.is_empty() {
        return json!([prompt, &thought.text, close].concat());
    }
    let ids = thought.ids.iter().map(|id| json!(id));
    std::iter::once(json!(prompt)).chain(ids).chain([json!(close)]).collect()
}

/// The first phase.
pub(super) fn thought_body(settings: &Settings, call: &BackendCall, prompt: &str, thinking: Tokens) -> Value {
    let mut body = common(call, json!(prompt), Some(thinking));
    body.insert("stop".to_owned(), json!([settings.end_tag]));
    Value::Object(body)
}

/// The second phase. The caller's stop texts are looked for above, where they are for all backends: the server
/// would find one in the blank before the answer already, and would keep back the end of an answer that only
/// looks like one.
pub(super) fn solution_body(call: &BackendCall, prompt: Value, solution: Tokens, banned: &[u32]) -> Value {
    let mut body = common(call, prompt, call.stated_limit(solution));
    let bans = banned.iter().map(|id| json!([id, false]));
    let bias: Vec<Value> = bias(&call.request).chain(bans).collect();
    if !bias.is_empty() {
        body.insert("logit_bias".to_owned(), bias.into());
    }
    if let Some(schema) = call.request.response_format.as_ref().and_then(schema) {
        body.insert("json_schema".to_owned(), schema);
    }
    Value::Object(body)
}

fn common(call: &BackendCall, prompt: Value, limit: Option<Tokens>) -> Map<String, Value> {
    let most = limit.map_or(json!(-1), |limit| json!(limit.clamp_u32().clamp(1, i32::MAX.cast_unsigned())));
    // The server's seed has 32 bits, all of them set meaning a random one; 0 tokens would generate one,
    // and −1 are as many as fit.
    let own = [
        ("prompt".to_owned(), prompt),
        ("n_predict".to_owned(), most),
        ("stream".to_owned(), json!(true)),
        ("return_tokens".to_owned(), json!(true)),
        ("cache_prompt".to_owned(), json!(true)),
        ("seed".to_owned(), json!(call.seed & 0x7FFF_FFFF)),
    ];
    own.into_iter().chain(sampling_members(&call.request)).collect()
}

/// The caller's own biases, in the server's form: OpenAI's object as pairs.
fn bias(request: &Request) -> impl Iterator<Item = Value> {
    let stated = request.extra.get("logit_bias").and_then(Value::as_object);
    stated.into_iter().flatten().filter_map(|(id, bias)| Some(json!([id.parse::<u32>().ok()?, bias])))
}

/// The schema of a `response_format`; plain text has none.
fn schema(format: &Value) -> Option<Value> {
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Some(json!({"type": "object"})),
        Some("json_schema") => format.pointer("/json_schema/schema").cloned(),
        _ => None,
    }
}
