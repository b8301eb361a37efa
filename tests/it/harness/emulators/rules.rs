//! What each provider refuses, and what it makes of the rest.

use serde_json::{Value, json};

use super::chat::{Kind, Script};
use super::efforts;

/// What is to be generated.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) thought: u64,
    pub(super) answer: u64,
    /// True if a limit ends it.
    pub(super) cut_off: bool,
    /// True if the answer is taken for a thought, as a parser does that has not seen it closed.
    pub(super) mistaken: bool,
}

/// A status and a body.
type Refusal = (u16, Value);

/// The members that Mistral documents.
const MISTRAL: [&str; 15] = [
    "model",
    "messages",
    "stream",
    "max_tokens",
    "temperature",
    "top_p",
    "random_seed",
    "stop",
    "tools",
    "tool_choice",
    "response_format",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "parallel_tool_calls",
];

/// What comes of a request.
pub(super) fn work(kind: Kind, script: Script, path: &str, body: &Value) -> Result<Work, Refusal> {
    refuse(kind, script, path, body)?;
    let said = said(body);
    let thinking = effort(script, body)?;
    let thinks = if resumes(body) || !is_on(kind, body) { 0 } else { thinking };
    let budget = budget(kind, body).filter(|_| !script.forgets).unwrap_or(u64::MAX);
    let limit = ["max_tokens", "max_completion_tokens"].iter().find_map(|name| body[*name].as_u64());
    let limit = limit.unwrap_or(u64::MAX);
    let thought = thinks.min(budget).min(limit);
    let wanted = script.answers.saturating_sub(said);
    let answer = wanted.min(limit - thought);
    let cut_off = thought < thinks.min(budget) || answer < wanted;
    let mistaken = kind == Kind::Sglang && resumes(body) && on_template(body) != Some(false);
    Ok(Work { thought, answer, cut_off, mistaken })
}

/// How long it would think at the effort that is asked for.
fn effort(script: Script, body: &Value) -> Result<u64, Refusal> {
    let stated = body["reasoning_effort"].as_str().or(body["reasoning"]["effort"].as_str());
    let refusal = || (400, error(Kind::OpenAi, "Unsupported value: 'reasoning_effort'"));
    if stated.is_some() && efforts::are_refused(body["model"].as_str().unwrap_or_default()) {
        return Err(refusal());
    }
    let Some(word) = stated.filter(|_| !script.efforts.is_empty()) else { return Ok(script.thinks) };
    let level = script.efforts.iter().find(|(known, _)| *known == word);
    level.map(|(_, thinks)| *thinks).ok_or_else(refusal)
}

/// An error inside a stream.
pub(super) fn failure() -> Value {
    json!({ "error": { "message": "the engine is gone", "type": "server_error", "code": 500 } })
}

fn refuse(kind: Kind, script: Script, path: &str, body: &Value) -> Result<(), Refusal> {
    let usual = match kind {
        Kind::DeepSeek => ["/chat/completions", "/beta/chat/completions"].contains(&path),
        _ => path == "/v1/chat/completions",
    };
    if !usual {
        return Err((404, error(kind, "no such path")));
    }
    if script.busy && budget(kind, body).is_some() {
        return Err((503, error(kind, "no room")));
    }
    let stops = body["stop"].as_array().map_or(0, Vec::len);
    if (kind == Kind::OpenAi && stops > 4) || (kind == Kind::DeepSeek && stops > 16) {
        return Err((400, error(kind, "Invalid 'stop': array too long.")));
    }
    let objection = match kind {
        Kind::DeepSeek => deepseek(path, body),
        Kind::DashScope => dashscope(body),
        Kind::OpenRouter => openrouter(body),
        Kind::Vllm | Kind::Sglang | Kind::LlamaCpp => open_weights(kind, script, body),
        Kind::Mistral => return mistral(body),
        Kind::Xai => xai(body),
        Kind::Moonshot => moonshot(body),
        Kind::Ollama | Kind::OpenAi => None,
    };
    objection.map_or(Ok(()), |what| Err((400, error(kind, what))))
}

fn last(body: &Value) -> &Value {
    body["messages"].as_array().unwrap().last().unwrap()
}

fn deepseek(path: &str, body: &Value) -> Option<&'static str> {
    let (prefix, answers) = (last(body)["prefix"] == true, last(body)["role"] == "assistant");
    let has_calls = messages(body).any(|message| message.get("tool_calls").is_some());
    let lost = has_calls && messages(body).any(lacks_its_thought);
    if prefix && !path.starts_with("/beta") {
        Some("prefix is a beta feature")
    } else if answers && !prefix {
        Some("the last message is not the user's")
    } else if is_on(Kind::DeepSeek, body) && lost {
        Some("The reasoning_content in the thinking mode must be passed back to the API.")
    } else if is_on(Kind::DeepSeek, body) && is_forced(body) {
        Some("Thinking mode does not support this tool_choice")
    } else if body["response_format"]["type"] == "json_schema" {
        Some("This response_format type is unavailable now")
    } else if body["response_format"]["type"] == "json_object" && !says_json(body) {
        Some(
            "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
        )
    } else {
        None
    }
}

fn says_json(body: &Value) -> bool {
    body["messages"].to_string().to_ascii_lowercase().contains("json")
}

fn dashscope(body: &Value) -> Option<&'static str> {
    if last(body)["partial"] == true && is_on(Kind::DashScope, body) {
        Some("partial mode does not go with thinking")
    } else if is_on(Kind::DashScope, body) && is_forced(body) {
        Some("The tool_choice parameter does not support being set to required or object in thinking mode")
    } else {
        (last(body)["role"] == "assistant").then_some("the last message is not the user's")
    }
}

fn openrouter(body: &Value) -> Option<&'static str> {
    let reasoning = &body["reasoning"];
    let total = body["max_tokens"].as_u64().unwrap_or(u64::MAX);
    if reasoning.get("effort").is_some() && reasoning.get("max_tokens").is_some() {
        return Some("only one of effort and max_tokens");
    }
    let none_left = reasoning["max_tokens"].as_u64().is_some_and(|budget| budget >= total);
    none_left.then_some("max_tokens must be greater than the reasoning budget")
}

fn open_weights(kind: Kind, script: Script, body: &Value) -> Option<&'static str> {
    let goes_on = body["continue_final_message"] == true;
    if goes_on && body["add_generation_prompt"] != false {
        Some("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    } else if goes_on && kind == Kind::LlamaCpp && is_on(kind, body) {
        Some("Assistant response prefill is incompatible with enable_thinking.")
    } else if budget(kind, body).is_some() && !script.holds {
        Some("thinking_token_budget is set but reasoning_config is not configured")
    } else {
        None
    }
}

fn mistral(body: &Value) -> Result<(), Refusal> {
    if let Some(name) = body.as_object().unwrap().keys().find(|name| !MISTRAL.contains(&name.as_str())) {
        let detail = json!([{ "type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted" }]);
        let error =
            json!({ "object": "error", "message": { "detail": detail }, "type": "invalid_request_error" });
        return Err((422, error));
    }
    if last(body)["role"] == "assistant" && last(body)["prefix"] != true {
        return Err((400, error(Kind::Mistral, "Expected last role User or Tool")));
    }
    // NousResearch/hermes-agent#20154 and many others.
    let follows = messages(body).zip(messages(body).skip(1));
    if follows.into_iter().any(|(first, next)| first["role"] == "tool" && next["role"] == "user") {
        return Err((400, error(Kind::Mistral, "Unexpected role 'user' after role 'tool'")));
    }
    Ok(())
}

/// By platform.kimi.ai/docs, theopenco/llmgateway#2093 (an empty thought counts as none) and kodustech/kodus-ai#1120.
fn moonshot(body: &Value) -> Option<&'static str> {
    let is_lost = |thought: &Value| thought.as_str().is_none_or(str::is_empty);
    let mut calls = messages(body).filter(|message| message.get("tool_calls").is_some());
    if is_on(Kind::Moonshot, body) && calls.any(|message| is_lost(&message["reasoning_content"])) {
        Some("thinking is enabled but reasoning_content is missing in assistant tool call message at index 1")
    } else if is_on(Kind::Moonshot, body) && is_forced(body) && body["model"] != "kimi-k3" {
        Some("tool_choice 'required' is incompatible with thinking enabled")
    } else if body.get("temperature").is_some_and(|temperature| temperature != 1) {
        Some("invalid temperature: only 1 is allowed for this model")
    } else if body.get("top_p").is_some_and(|top_p| top_p != 0.95) {
        Some("invalid top_p: only 0.95 is allowed for this model")
    } else {
        None
    }
}

fn xai(body: &Value) -> Option<&'static str> {
    let refused = ["stop", "presence_penalty", "frequency_penalty"];
    let has = refused.iter().any(|name| body.get(*name).is_some());
    has.then_some("Argument not supported by reasoning models")
}

/// The shape of its errors.
fn error(kind: Kind, what: &str) -> Value {
    match kind {
        Kind::OpenRouter => json!({ "error": { "message": what, "code": 400 } }),
        Kind::Vllm => {
            json!({ "error": { "message": what, "type": "BadRequestError", "param": null, "code": 400 } })
        }
        Kind::Sglang => {
            json!({ "object": "error", "message": what, "type": "BadRequest", "param": null, "code": 400 })
        }
        Kind::Xai => json!({ "code": "Client specified an invalid argument", "error": what }),
        _ => {
            json!({ "error": { "message": what, "type": "invalid_request_error", "param": null, "code": "invalid_request_error" } })
        }
    }
}

/// A turn of the model that lost its thought: where a tool was called, each must come back, the answer's behind the calls too
/// (openclaw/openclaw#73417, vercel/ai#13203). What the caller goes on from has none of its own.
fn lacks_its_thought(message: &Value) -> bool {
    let goes_on = message["prefix"] == true;
    let is_lost = message["reasoning_content"].as_str().is_none_or(str::is_empty);
    message["role"] == "assistant" && !goes_on && is_lost
}

/// Whether a tool must be called. `DeepSeek`, `DashScope` and Moonshot take that of no model that thinks (deepseek-ai/DeepSeek-V3#1376,
/// cloudwego/eino#994, `UKGovernmentBEIS/inspect_ai#5152`).
fn is_forced(body: &Value) -> bool {
    body["tool_choice"] == "required" || body["tool_choice"].is_object()
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    body["messages"].as_array().unwrap().iter()
}

/// Whether it is to think: all do unless they are told otherwise.
fn is_on(kind: Kind, body: &Value) -> bool {
    match kind {
        Kind::DeepSeek | Kind::Moonshot => body["thinking"]["type"] != "disabled",
        Kind::DashScope => body["enable_thinking"] == true,
        Kind::OpenRouter => body["reasoning"]["enabled"] != false,
        Kind::Vllm | Kind::Sglang | Kind::LlamaCpp => on_template(body) != Some(false),
        Kind::Mistral => body["reasoning_effort"] == "high",
        Kind::Xai | Kind::Ollama | Kind::OpenAi => body["reasoning_effort"] != "none",
    }
}

fn on_template(body: &Value) -> Option<bool> {
    body["chat_template_kwargs"]["enable_thinking"].as_bool()
}

fn budget(kind: Kind, body: &Value) -> Option<u64> {
    match kind {
        Kind::DashScope => body["thinking_budget"].as_u64(),
        // Without that it goes to a provider that knows no budget, and nobody says so.
        Kind::OpenRouter if body["provider"]["require_parameters"] == true => {
            body["reasoning"]["max_tokens"].as_u64()
        }
        Kind::Vllm => body["thinking_token_budget"].as_u64(),
        Kind::Sglang => body["custom_params"]["thinking_budget"].as_u64(),
        Kind::LlamaCpp => body["thinking_budget_tokens"].as_u64(),
        _ => None,
    }
}

/// True if the thought is closed already.
fn resumes(body: &Value) -> bool {
    let last = last(body);
    let closed = last["content"].as_str().is_some_and(|text| text.contains("</think>"));
    last["reasoning_content"].is_string() || last["content"][0]["closed"] == true || closed
}

/// How much of the answer is there already.
fn said(body: &Value) -> u64 {
    let last = last(body);
    if last["role"] != "assistant" {
        return 0;
    }
    let text = last["content"].as_str().or(last["content"][1]["text"].as_str()).unwrap_or_default();
    let answer = text.rsplit("</think>").next().unwrap_or_default();
    answer.split_whitespace().count() as u64
}
