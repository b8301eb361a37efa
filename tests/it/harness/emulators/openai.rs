//! OpenAI: Responses, and beside them chat completions, which take less of GPT-5.6 and later. By its deployment
//! checklist (developers.openai.com/api/docs/guides/deployment-checklist, 2026-11-23) `gpt-6-astra` and `gpt-6.1-sol` take no
//! tools there, `gpt-6-sol` and `gpt-6-luna` take them at effort `none` alone, and none of them samples while it thinks.

use axum::http::{HeaderMap, Uri};
use serde_json::{Value, json};

use super::responses::Responses;
use super::{
    Api, Bill, Emitted, Grant, KEY, Refusal, Written, chunks, count, efforts, said, schemas, unknown,
};

const MEMBERS: [&str; 14] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_completion_tokens",
    "reasoning_effort",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "prompt_cache_key",
    "presence_penalty",
    "logprobs",
    "response_format",
];

/// What no request has while the model thinks.
const SAMPLING: [&str; 4] = ["temperature", "top_p", "logprobs", "top_logprobs"];

/// Before the name of a model that was asked over chat completions.
const OVER_CHAT: &str = "chat ";

/// The provider.
#[derive(Debug, Default)]
pub(crate) struct OpenAi;

fn wrong(param: &str, message: &str) -> Refusal {
    let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": null});
    (400, json!({"error": error}))
}

impl Api for OpenAi {
    const BASE: &'static str = "/v1";

    fn check(&self, uri: &Uri, headers: &HeaderMap, body: &Value) -> Result<Grant, Refusal> {
        if uri.path() != "/v1/chat/completions" {
            return Responses.check(uri, headers, body);
        }
        if said(headers, "authorization") != Some(&format!("Bearer {KEY}")) {
            return Err((401, json!({"error": {"code": "invalid_api_key"}})));
        }
        if let Some(name) = unknown(body, &MEMBERS) {
            return Err(wrong(name, &format!("Unrecognized request argument supplied: {name}")));
        }
        let model = body["model"].as_str().unwrap_or_default();
        if is_responses_only(model) {
            let message = "This model is only supported in v1/responses and not in v1/chat/completions.";
            return Err(wrong("model", message));
        }
        // From GPT-5.6 on: developers.openai.com/api/docs/guides/prompt-caching (2026-11).
        let keeps = ["gpt-5.6", "gpt-6"].iter().any(|name| model.contains(name));
        if !keeps && body["messages"].to_string().contains("\"prompt_cache_breakpoint\"") {
            return Err(wrong("messages", "Unknown parameter: 'prompt_cache_breakpoint'."));
        }
        check_strict(body)?;
        let thinking = thinking(body, model)?;
        tools(body, model, thinking.is_some())?;
        let sampled = SAMPLING.iter().find(|name| thinking.is_some() && !body[**name].is_null());
        if let Some(name) = sampled {
            return Err(wrong(
                name,
                &format!("Unsupported parameter: '{name}' is not supported with this model."),
            ));
        }
        let prompt = [&body["messages"], &body["tools"]].into_iter().map(count).sum();
        let most = body["max_completion_tokens"].as_u64().unwrap_or(u64::MAX);
        let bill = Bill { prompt, ..Bill::default() };
        Ok(Grant {
            model: format!("{OVER_CHAT}{model}"),
            bill,
            thinking,
            most,
            shows: false,
            ..Grant::default()
        })
    }

    fn events(&self, grant: &Grant, written: &Written) -> Vec<Emitted> {
        if grant.model.starts_with(OVER_CHAT) {
            chat_events(grant, written)
        } else {
            Responses.events(grant, written)
        }
    }

    fn failure(&self) -> Emitted {
        Responses.failure()
    }
}

fn check_strict(body: &Value) -> Result<(), Refusal> {
    let format = &body["response_format"]["json_schema"];
    let functions =
        body["tools"].as_array().into_iter().flatten().map(|tool| (&tool["function"], "parameters"));
    for (held, schema) in functions.chain([(format, "schema")]).filter(|(held, _)| held["strict"] == true) {
        if let Some(why) = schemas::strict(&held[schema]) {
            return Err(wrong("response_format", &format!("Invalid schema: In context=(), {why}")));
        }
    }
    Ok(())
}

/// True for those that always think, and take tools over Responses alone.
fn always_thinks(model: &str) -> bool {
    model.contains("astra") || model.contains("gpt-6.1-sol") || model.contains("gpt-6.2-sol")
}

/// Those that are served by Responses alone: pro by their model pages, Codex by its own and by neon.com/docs/ai-gateway/openai-responses.
fn is_responses_only(model: &str) -> bool {
    model.contains("-pro") || model.contains("codex")
}

/// How much it thinks at the word that is asked for; nothing where it does not.
fn thinking(body: &Value, model: &str) -> Result<Option<u64>, Refusal> {
    let refused = |word: &str| Err(wrong("reasoning_effort", &format!("Unsupported value: '{word}'")));
    let known = efforts::of(model);
    let Some(word) = body["reasoning_effort"].as_str() else {
        return Ok((!known.is_empty()).then_some(500));
    };
    match known.iter().find(|(known, _)| *known == word) {
        Some(("max", _)) if always_thinks(model) => refused("max"),
        Some((_, thinks)) => Ok(Some(*thinks).filter(|thinks| *thinks > 0)),
        None => refused(word),
    }
}

fn tools(body: &Value, model: &str, thinks: bool) -> Result<(), Refusal> {
    if body["tools"].is_null() {
        return Ok(());
    }
    if always_thinks(model) {
        return Err(wrong(
            "tools",
            &format!("Function tools are not supported for {model} in /v1/chat/completions."),
        ));
    }
    let takes_both = !["gpt-5.6", "gpt-6"].iter().any(|name| model.contains(name));
    let message = format!(
        "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function tools, \
         use /v1/responses or set reasoning_effort to 'none'."
    );
    if thinks && !takes_both { Err(wrong("reasoning_effort", &message)) } else { Ok(()) }
}

fn chat_events(grant: &Grant, written: &Written) -> Vec<Emitted> {
    let chunk = |choices: &Value, words: u64| {
        let event = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices});
        Emitted { text: format!("data: {event}\n\n"), words }
    };
    let choice =
        |delta: &Value, reason: Option<&str>| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let mut events = vec![chunk(&choice(&json!({"role": "assistant"}), None), written.thought.len() as u64)];
    events.extend(
        chunks(&written.answer).map(|(text, words)| chunk(&choice(&json!({"content": text}), None), words)),
    );
    for (at, call) in written.calls.iter().enumerate() {
        let function = json!({"name": call.0, "arguments": call.1.to_string()});
        let delta = json!({"tool_calls": [{"index": at, "id": format!("call_{at}"), "type": "function", "function": function}]});
        events.push(chunk(&choice(&delta, None), super::call_words(call)));
    }
    let reason = match (written.limited, written.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    };
    events.push(chunk(&choice(&json!({}), Some(reason)), 0));
    let usage = json!({
        "prompt_tokens": grant.bill.prompt, "completion_tokens": written.count(),
        "completion_tokens_details": {"reasoning_tokens": written.thought.len()},
    });
    let end =
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage});
    events.push(Emitted { text: format!("data: {end}\n\ndata: [DONE]\n\n"), words: 0 });
    events
}
