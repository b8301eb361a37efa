//! Our call as OpenAI's JSON.

use serde_json::{Map, Value, json};

use super::{LimitMember, Settings};
use crate::backend::Call;
use crate::backend::remote::wire::{decimal, messages};
use crate::chat::Request;
use crate::units::Tokens;

/// Members that are ours to set, whatever the caller passed through.
const OURS: [&str; 7] =
    ["model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"];

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &Call, effort: Option<&str>, tokens: Tokens) -> Value {
    let request = &call.request;
    let mut body: Map<String, Value> =
        request.extra.iter().filter(|(name, _)| !OURS.contains(&name.as_str())).map(owned).collect();
    let limit = match settings.limit {
        LimitMember::MaxCompletionTokens => "max_completion_tokens",
        LimitMember::MaxTokens => "max_tokens",
    };
    body.insert("model".to_owned(), json!(settings.model));
    body.insert("messages".to_owned(), messages(&request.messages, settings.thoughts_back));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    body.insert(limit.to_owned(), json!(tokens));
    let mut optional = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    optional("reasoning_effort", effort.map(|word| json!(word)));
    optional("temperature", request.sampling.temperature.map(decimal));
    optional("top_p", request.sampling.top_p.map(decimal));
    optional("top_k", request.sampling.top_k.map(|k| json!(k)));
    // A choice's own seed, and only where the caller wants one: some upstreams refuse the member. Theirs is a
    // signed number.
    optional("seed", request.sampling.seed.map(|_| json!(call.seed & i64::MAX.cast_unsigned())));
    optional("stop", (!request.sampling.stop.is_empty()).then(|| json!(request.sampling.stop)));
    optional("tools", tools(request));
    optional("tool_choice", request.tool_choice.clone());
    optional("response_format", request.response_format.clone());
    Value::Object(body)
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn tools(request: &Request) -> Option<Value> {
    let declarations = || request.tools.iter().map(|tool| tool.declaration.clone()).collect();
    (!request.tools.is_empty()).then(declarations)
}
