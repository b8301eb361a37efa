//! Translates calls to the JSON of vLLM's raw completions.

use serde_json::{Map, Value, json};

use crate::remote::openai::{Settings, ThinkingSwitch, conversation};
use crate::remote::passthrough;
use crate::remote::wire::sampling_members;
use crate::{BackendCall, tool_calls};
use stint_types::chat::Request;
use stint_types::units::Tokens;

/// The bias that bans a token.
const BAN_BIAS: i32 = -100;

/// What `/tokenize` renders.
pub(super) fn template_body(settings: &Settings, request: &Request, thinking: bool) -> Value {
    let messages = conversation::plain_messages(settings, &request.messages);
    let mut body = json!({"model": settings.model, "messages": messages, "add_generation_prompt": true});
    if tool_calls::offers_tools(request) {
        body["tools"] = request.tools.iter().map(|tool| tool.declaration.clone()).collect();
    }
    let mut arguments = passthrough::template_arguments(request, &settings.client.members);
    if let ThinkingSwitch::Template(argument) = &settings.dialect.switch {
        arguments.insert(argument.to_string(), json!(thinking));
    }
    if !arguments.is_empty() {
        body["chat_template_kwargs"] = arguments.into();
    }
    body
}

/// The first phase. The tag may be a special token, whose text would be left out, so that it never stopped there.
pub(super) fn thought_body(
    settings: &Settings,
    call: &BackendCall,
    prompt: &[u32],
    thinking: Tokens,
) -> Value {
    let mut body = common(settings, call, prompt, Some(thinking));
    body.insert("stop".to_owned(), json!([settings.end_tag]));
    body.insert("skip_special_tokens".to_owned(), json!(false));
    body.extend(bias(&call.request, None));
    Value::Object(body)
}

/// The second phase. The caller's stop texts are looked for above, where they are for all backends.
pub(super) fn solution_body(
    settings: &Settings,
    call: &BackendCall,
    prompt: &[u32],
    solution: Tokens,
    banned: Option<[u32; 2]>,
) -> Value {
    let mut body = common(settings, call, prompt, call.stated_limit(solution));
    body.extend(bias(&call.request, banned));
    // Only an answer has a form; a thought before it has none.
    body.extend(call.request.response_format.clone().map(|format| ("response_format".to_owned(), format)));
    Value::Object(body)
}

/// Without a word of its limit this API writes 16 tokens; with none as its limit, as many as fit.
fn common(
    settings: &Settings,
    call: &BackendCall,
    prompt: &[u32],
    limit: Option<Tokens>,
) -> Map<String, Value> {
    let own = [
        ("model".to_owned(), json!(settings.model)),
        ("prompt".to_owned(), json!(prompt)),
        ("max_tokens".to_owned(), json!(limit)),
        ("stream".to_owned(), json!(true)),
        ("stream_options".to_owned(), json!({"include_usage": true})),
        ("return_token_ids".to_owned(), json!(true)),
        ("seed".to_owned(), json!(call.seed & i64::MAX.cast_unsigned())),
    ];
    own.into_iter().chain(sampling_members(&call.request)).collect()
}

/// The caller's own biases, and what must not come.
fn bias(request: &Request, banned: Option<[u32; 2]>) -> Option<(String, Value)> {
    let stated = request.extra.get("logit_bias").and_then(Value::as_object).cloned().unwrap_or_default();
    let bans = banned.into_iter().flatten().map(|id| (id.to_string(), json!(BAN_BIAS)));
    let all: Map<String, Value> = stated.into_iter().chain(bans).collect();
    (!all.is_empty()).then(|| ("logit_bias".to_owned(), Value::Object(all)))
}
