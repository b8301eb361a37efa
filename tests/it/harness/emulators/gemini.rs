//! Gemini's own API. A model whose name has a 3 in it, or that is a Gemini 4, takes levels and wants signatures; others take
//! budgets, which they overshoot a little. Levels and bounds of budgets are those of ai.google.dev/gemini-api/docs/thinking
//! (2026-10); that `gemini-3.5-flash-lite` takes no penalties is from docs.cloud.google.com, 3-5-flash-lite (2026-11), and that
//! Gemini 4 takes no budget from its guides/gemini-4-argon (2026-11).

use axum::http::{HeaderMap, Uri};
use serde_json::{Map, Value, json};

use super::{Api, Bill, Emitted, Grant, KEY, Refusal, Written, chunks, count, said, sign, unknown};

/// The provider.
#[derive(Debug, Default)]
pub(crate) struct Gemini;

fn refuse(status: u16, word: &str, message: impl Into<String>) -> Refusal {
    (status, json!({"error": {"code": status, "message": message.into(), "status": word}}))
}

fn ensure(right: bool, message: impl Into<String>) -> Result<(), Refusal> {
    if right { Ok(()) } else { Err(refuse(400, "INVALID_ARGUMENT", message)) }
}

fn members(place: &str, value: &Value, known: &[&str]) -> Result<(), Refusal> {
    let name = unknown(value, known);
    let message = |name| {
        format!("Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field.")
    };
    name.map_or(Ok(()), |name| ensure(false, message(name)))
}

impl Api for Gemini {
    const BASE: &'static str = "/v1beta";

    fn check(&self, uri: &Uri, headers: &HeaderMap, body: &Value) -> Result<Grant, Refusal> {
        let model = uri
            .path()
            .strip_prefix("/v1beta/models/")
            .and_then(|rest| rest.strip_suffix(":streamGenerateContent"));
        let Some(model) = model.filter(|_| uri.query() == Some("alt=sse")) else {
            return Err(refuse(404, "NOT_FOUND", "Requested entity was not found."));
        };
        ensure(
            said(headers, "x-goog-api-key") == Some(KEY),
            "API key not valid. Please pass a valid API key.",
        )?;
        members("", body, &["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"])?;
        let config = &body["generationConfig"];
        members(
            "generation_config",
            config,
            &[
                "maxOutputTokens",
                "thinkingConfig",
                "temperature",
                "topP",
                "topK",
                "seed",
                "stopSequences",
                "responseMimeType",
                "responseJsonSchema",
                "presencePenalty",
                "frequencyPenalty",
            ],
        )?;
        ensure(
            config["stopSequences"].as_array().is_none_or(|all| all.len() <= 5),
            "The number of stop sequences is over 5.",
        )?;
        ensure(
            config["seed"].as_i64().is_none_or(|seed| i32::try_from(seed).is_ok()),
            "Invalid value at 'generation_config.seed' (TYPE_INT32)",
        )?;
        let leveled = model.contains('3') || model.contains("gemini-4");
        let penalized = ["presencePenalty", "frequencyPenalty"].iter().any(|name| !config[name].is_null());
        ensure(!(penalized && model.contains("3.5-flash-lite")), "Penalty is not enabled for this model")?;
        let thinking = thinking(&config["thinkingConfig"], model)?;
        contents(body, model, leveled)?;
        declarations(body)?;
        let read = [&body["systemInstruction"], &body["tools"], &body["contents"]];
        let bill = Bill { prompt: read.into_iter().map(count).sum(), ..Bill::default() };
        let most = config["maxOutputTokens"].as_u64().unwrap_or(65_536);
        let shows = config["thinkingConfig"]["includeThoughts"] == true;
        Ok(Grant { model: model.to_owned(), bill, thinking, most, shows, ..Grant::default() })
    }

    /// Summaries say little of a thought; each event tells the counts so far.
    fn events(&self, grant: &Grant, written: &Written) -> Vec<Emitted> {
        let (mut events, mut thought, mut answer) = (Vec::new(), 0, 0);
        let usage = |thought: u64, answer: u64| {
            let mut usage = Map::new();
            usage.insert("promptTokenCount".into(), grant.bill.prompt.into());
            usage.insert("totalTokenCount".into(), (grant.bill.prompt + thought + answer).into());
            for (name, count) in [("thoughtsTokenCount", thought), ("candidatesTokenCount", answer)] {
                if count > 0 {
                    usage.insert(name.into(), count.into());
                }
            }
            Value::Object(usage)
        };
        if !written.thought.is_empty() {
            thought = written.thought.len() as u64;
            let summary = json!({"text": "**Considering it**", "thought": true});
            let parts = if grant.shows { vec![summary] } else { Vec::new() };
            events.push(chunk(&parts, None, &usage(thought, 0), thought));
        }
        for (text, words) in chunks(&written.answer) {
            answer += words;
            events.push(chunk(&[json!({"text": text})], None, &usage(thought, answer), words));
        }
        for (at, call) in written.calls.iter().enumerate() {
            answer += super::call_words(call);
            let mut part = json!({"functionCall": {"name": call.0, "args": call.1}});
            if at == 0 && thought > 0 {
                part["thoughtSignature"] = json!(sign(&grant.model, call.0));
            }
            events.push(chunk(&[part], None, &usage(thought, answer), super::call_words(call)));
        }
        let reason = if written.limited { "MAX_TOKENS" } else { "STOP" };
        let signature = json!({"text": "", "thoughtSignature": sign(&grant.model, &written.answer_text())});
        let signs = thought > 0 && written.calls.is_empty() && !written.limited;
        let last = if signs { vec![signature] } else { Vec::new() };
        events.push(chunk(&last, Some(reason), &usage(thought, answer), 0));
        events
    }

    fn failure(&self) -> Emitted {
        let (_, error) = refuse(503, "UNAVAILABLE", "The model is overloaded. Please try again later.");
        Emitted { text: format!("data: {error}\r\n\r\n"), words: 0 }
    }
}

fn chunk(parts: &[Value], reason: Option<&str>, usage: &Value, words: u64) -> Emitted {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    let data =
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "x", "responseId": "r"});
    Emitted { text: format!("data: {data}\r\n\r\n"), words }
}

/// The levels that a model has.
fn levels(model: &str) -> &'static [&'static str] {
    let has = |name: &str| model.contains(name);
    match () {
        () if has("gemini-4-hydrogen") => &["low", "medium", "high", "xhigh"],
        () if has("gemini-4") => &["low", "medium", "high"],
        () if !has("3") => &[],
        () if has("3.5-flash-lite") || has("3.6-flash") || has("3-flash") || has("3.1-flash-lite") => {
            &["minimal", "low", "medium", "high"]
        }
        () if has("3.1-pro") || has("3.5-flash") || has("3.7-flash") || has("3.8-flash") => {
            &["low", "medium", "high"]
        }
        () => &["minimal", "low", "high"],
    }
}

/// Which budgets a model takes beside none at all, and whether none is one.
fn budgets(model: &str) -> (std::ops::RangeInclusive<u64>, bool) {
    match () {
        () if model.contains("2.5-pro") => (128..=32_768, false),
        () if model.contains("flash-lite") => (512..=24_576, true),
        () => (1..=24_576, true),
    }
}

fn thinking(config: &Value, model: &str) -> Result<Option<u64>, Refusal> {
    members(
        "generation_config.thinking_config",
        config,
        &["thinkingBudget", "thinkingLevel", "includeThoughts"],
    )?;
    let thinks = !["gemini-1", "gemini-2.0"].iter().any(|name| model.contains(name));
    ensure(thinks || config.is_null(), "Thinking is not supported for this model.")?;
    let (budget, level) = (config["thinkingBudget"].as_u64(), config["thinkingLevel"].as_str());
    ensure(
        budget.is_none() || level.is_none(),
        "You can only set only one of thinking budget and thinking level.",
    )?;
    let known = levels(model);
    ensure(level.is_none() || !known.is_empty(), "Thinking level is not supported for this model.")?;
    ensure(
        level.is_none_or(|level| known.contains(&level)),
        format!("Invalid value at 'thinking_level': \"{}\"", level.unwrap_or_default()),
    )?;
    ensure(
        budget.is_none() || !model.contains("gemini-4"),
        "Thinking budget is not supported for this model. Use thinking level instead.",
    )?;
    let (range, may_be_off) = budgets(model);
    ensure(
        budget.is_none_or(|budget| range.contains(&budget) || may_be_off && budget == 0),
        format!("The thinking budget is invalid. Please choose a value between {range:?}."),
    )?;
    match (budget, level) {
        (Some(0), _) => Ok(None),
        // A budget is a target.
        (Some(budget), _) => Ok(Some(budget + budget / 20)),
        (None, Some("minimal")) => Ok(Some(10)),
        (None, Some("low")) => Ok(Some(50)),
        (None, _) => Ok(Some(u64::MAX)),
    }
}

fn contents(body: &Value, model: &str, signed: bool) -> Result<(), Refusal> {
    let contents = body["contents"].as_array().cloned().unwrap_or_default();
    ensure(!contents.is_empty(), "* GenerateContentRequest.contents: contents is not specified")?;
    let asks = |content: &Value| content["role"] == "user" && !kinds(content).contains(&"functionResponse");
    let current = contents.iter().rposition(asks).unwrap_or(0);
    let mut open = 0;
    for (at, content) in contents.iter().enumerate() {
        members("contents", content, &["role", "parts"])?;
        let parts = content["parts"].as_array().cloned().unwrap_or_default();
        ensure(!parts.is_empty(), "contents.parts must not be empty.")?;
        for part in &parts {
            members(
                "contents.parts",
                part,
                &["text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"],
            )?;
            members("function_call", &part["functionCall"], &["id", "name", "args"])?;
            members("function_response", &part["functionResponse"], &["id", "name", "response"])?;
        }
        let kinds = kinds(content);
        let of = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
        ensure(
            of("functionResponse") == open,
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
        )?;
        open = of("functionCall");
        if let Some(call) =
            parts.iter().find(|part| part["functionCall"].is_object()).filter(|_| signed && at > current)
        {
            signature(call, model)?;
        }
    }
    Ok(())
}

fn kinds(content: &Value) -> Vec<&str> {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts.flat_map(|part| part.as_object().into_iter().flatten().map(|(name, _)| name.as_str())).collect()
}

/// Signed by this model, or honestly not at all.
fn signature(part: &Value, model: &str) -> Result<(), Refusal> {
    let name = part["functionCall"]["name"].as_str().unwrap_or_default();
    let signature = part["thoughtSignature"].as_str();
    let missing = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly";
    let signature = signature.ok_or_else(|| refuse(400, "INVALID_ARGUMENT", missing))?;
    ensure(
        signature == "skip_thought_signature_validator" || signature == sign(model, name),
        "Corrupted thought signature.",
    )
}

fn declarations(body: &Value) -> Result<(), Refusal> {
    for tool in body["tools"].as_array().into_iter().flatten() {
        members("tools", tool, &["functionDeclarations"])?;
        for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
            members(
                "tools.function_declarations",
                function,
                &["name", "description", "parametersJsonSchema"],
            )?;
        }
    }
    let calling = &body["toolConfig"]["functionCallingConfig"];
    members("function_calling_config", calling, &["mode", "allowedFunctionNames"])
}
