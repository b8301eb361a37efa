//! Anthropic's Messages. What a model takes follows from its name (`claude`).

use std::collections::BTreeSet;
use std::sync::Mutex;

use axum::http::{HeaderMap, Uri};
use serde_json::{Value, json};

use super::bound::{self, Prefix};
use super::claude::{self, Claude, Off, is_bound};
use super::{
    Api, Bill, Emitted, Grant, KEY, Refusal, Written, chunks, count, named, said, schemas, sign, unknown,
};

const MEMBERS: [&str; 14] = [
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "thinking",
    "output_config",
    "stop_sequences",
    "metadata",
    "cache_control",
    "tools",
    "tool_choice",
    "temperature",
    "top_k",
];
/// The features before their release that there are. One may be asked for that is over; a name that never was is refused.
const BETAS: [&str; 3] =
    ["interleaved-thinking-2025-05-14", "extended-cache-ttl-2025-04-11", "context-1m-2025-08-07"];
const BLOCKS: [(&str, &[&str]); 8] = [
    ("text", &["type", "text", "cache_control"]),
    ("image", &["type", "source", "cache_control"]),
    ("tool_use", &["type", "id", "name", "input", "cache_control"]),
    ("tool_result", &["type", "tool_use_id", "content", "is_error", "cache_control"]),
    ("thinking", &["type", "thinking", "signature"]),
    ("redacted_thinking", &["type", "data"]),
    ("tool_removal", &["type", "tool"]),
    ("tool_addition", &["type", "tool"]),
];

/// The provider, with what it has in its cache.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    cache: Mutex<Vec<String>>,
}

fn refuse(status: u16, kind: &str, message: impl Into<String>) -> Refusal {
    let error = json!({"type": kind, "message": message.into()});
    (status, json!({"type": "error", "error": error, "request_id": "req_1"}))
}

fn wrong(message: impl Into<String>) -> Refusal {
    refuse(400, "invalid_request_error", message)
}

fn ensure(right: bool, message: impl Into<String>) -> Result<(), Refusal> {
    if right { Ok(()) } else { Err(wrong(message)) }
}

fn members(place: &str, value: &Value, known: &[&str]) -> Result<(), Refusal> {
    match unknown(value, known) {
        Some(name) => Err(wrong(format!("{place}{name}: Extra inputs are not permitted"))),
        None => Ok(()),
    }
}

impl Api for Anthropic {
    const BASE: &'static str = "/v1";

    fn check(&self, uri: &Uri, headers: &HeaderMap, body: &Value) -> Result<Grant, Refusal> {
        if uri.path() != "/v1/messages" {
            return Err(refuse(404, "not_found_error", "Not found"));
        }
        // The SDK of late sends it as a bearer token.
        let bearer = said(headers, "authorization").and_then(|text| text.strip_prefix("Bearer "));
        if said(headers, "x-api-key").or(bearer) != Some(KEY) {
            return Err(refuse(401, "authentication_error", "invalid x-api-key"));
        }
        let version = said(headers, "anthropic-version")
            .ok_or_else(|| wrong("anthropic-version: header is required"))?;
        ensure(matches!(version, "2023-06-01" | "2026-10-21"), "anthropic-version: is not a valid version")?;
        if version == "2026-10-21" {
            let removed = ["temperature", "top_p", "top_k"].into_iter().find(|name| !body[name].is_null());
            ensure(removed.is_none(), format!("{removed:?}: not supported in this version"))?;
        }
        let asked = said(headers, "anthropic-beta").unwrap_or_default().split(',').map(str::trim);
        let asked: Vec<&str> = asked.filter(|beta| !beta.is_empty()).collect();
        let is_known = |beta: &&&str| BETAS.contains(beta) || bound::BETAS.contains(beta);
        let unknown = asked.iter().find(|beta| !is_known(beta));
        ensure(
            unknown.is_none(),
            format!("Unexpected value(s) {unknown:?} for the `anthropic-beta` header."),
        )?;
        members("", body, &MEMBERS)?;
        let model = body["model"].as_str().ok_or_else(|| wrong("model: Field required"))?;
        let claude = claude::of(model);
        let adaptive = claude.is_adaptive;
        let most = body["max_tokens"].as_u64().ok_or_else(|| wrong("max_tokens: Field required"))?;
        let thinking = thinking(body, claude, most)?;
        messages(body, model, thinking.is_some(), claude)?;
        tools(body)?;
        marks(body)?;
        output(body, claude)?;
        schemas::claude(body).map_or(Ok(()), |why| Err(wrong(why)))?;
        image_types(body)?;
        let shows = body["thinking"]["display"] == "summarized" || !adaptive;
        bound::check_betas(body, &asked).map_err(wrong)?;
        bound::check_task_budget(body).map_err(wrong)?;
        let prefix = is_bound(model).then(|| Prefix::read(model, body)).transpose().map_err(wrong)?;
        let messages = body["messages"].as_array().map_or(0, Vec::len);
        Ok(Grant { model: model.to_owned(), bill: self.bill(body), thinking, most, shows, prefix, messages })
    }

    fn events(&self, grant: &Grant, written: &Written) -> Vec<Emitted> {
        let Bill { prompt, cache_read, cache_write, cache_hour, .. } = grant.bill;
        let usage = json!({
            "input_tokens": prompt - cache_read - cache_write, "cache_read_input_tokens": cache_read,
            "cache_creation_input_tokens": cache_write, "output_tokens": 1,
            "cache_creation": {
                "ephemeral_5m_input_tokens": cache_write - cache_hour, "ephemeral_1h_input_tokens": cache_hour,
            },
        });
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": grant.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        let mut events = vec![named(&json!({"type": "message_start", "message": message}), 0)];
        events.push(named(&json!({"type": "ping"}), 0));
        let cut = written.limited && written.answer.is_empty();
        let mut blocks = 0..;
        let mut prefix = grant.prefix.clone();
        if !written.thought.is_empty() {
            thought(blocks.next().unwrap(), grant, written, cut, &mut prefix, &mut events);
        }
        if !written.answer.is_empty() {
            let said = json!({"type": "text", "text": written.answer_text()});
            prefix.iter_mut().for_each(|prefix| prefix.push(&said));
            let start = json!({"type": "text", "text": ""});
            let deltas = chunks(&written.answer)
                .map(|(text, words)| (json!({"type": "text_delta", "text": text}), words));
            block(blocks.next().unwrap(), &start, deltas, &mut events);
        }
        for (at, call) in written.calls.iter().enumerate() {
            let (name, input) = call;
            // Such a model thinks again before each call but the first.
            if at > 0 && !written.thought.is_empty() && prefix.is_some() {
                thought(blocks.next().unwrap(), grant, written, false, &mut prefix, &mut events);
            }
            let id = format!("toolu_{}_{at}", grant.messages);
            let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let called = json!({"type": "tool_use", "id": start["id"], "name": name, "input": input});
            prefix.iter_mut().for_each(|prefix| prefix.push(&called));
            let text = input.to_string();
            let (first, rest) = text.split_at(text.len() / 2);
            let delta = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
            let deltas = [(delta(""), 0), (delta(first), super::call_words(call)), (delta(rest), 0)];
            block(blocks.next().unwrap(), &start, deltas.into_iter(), &mut events);
        }
        let reason = match (written.limited, written.calls.is_empty()) {
            (true, _) => "max_tokens",
            (false, false) => "tool_use",
            (false, true) => "end_turn",
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        let usage = json!({
            "output_tokens": written.count(),
            "output_tokens_details": {"thinking_tokens": written.thought.len()},
        });
        events.push(named(&json!({"type": "message_delta", "delta": delta, "usage": usage}), 0));
        events.push(named(&json!({"type": "message_stop"}), 0));
        events
    }

    fn failure(&self) -> Emitted {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        named(&json!({"type": "error", "error": error}), 0)
    }
}

impl Anthropic {
    /// With a mark, what was asked before is read from the cache and the rest put there.
    fn bill(&self, body: &Value) -> Bill {
        let blocks = blocks(body);
        let unmarked = |block: &Value| {
            let mut block = block.clone();
            block.as_object_mut().unwrap().shift_remove("cache_control");
            block
        };
        let plain: Vec<Value> = blocks.iter().map(unmarked).collect();
        let prompt = plain.iter().map(count).sum();
        let mut ends: Vec<usize> = (1..=blocks.len()).filter(|end| is_marked(&blocks[end - 1])).collect();
        ends.extend(is_marked(body).then_some(blocks.len()));
        if ends.is_empty() {
            return Bill { prompt, ..Bill::default() };
        }
        let hour = blocks.iter().rposition(keeps_an_hour).map_or(0, |at| at + 1);
        Bill { prompt, ..self.marked(&plain, &ends, hour) }
    }

    /// What is read of the blocks up to the last mark, and what is put into the cache, so many blocks of it for an hour.
    fn marked(&self, blocks: &[Value], ends: &[usize], hour: usize) -> Bill {
        let blocks = &blocks[..ends[ends.len() - 1]];
        let mut cache = self.cache.lock().unwrap();
        let until = |end: usize| Value::from(&blocks[..end]).to_string();
        let known = (1..=blocks.len()).rev().find(|end| cache.contains(&until(*end))).unwrap_or(0);
        let words = |blocks: &[Value]| blocks.iter().map(count).sum();
        cache.extend(ends.iter().map(|end| until(*end)));
        let (cache_read, cache_write) = (words(&blocks[..known]), words(&blocks[known..]));
        let cache_hour = words(&blocks[known..hour.max(known)]);
        Bill { cache_read, cache_write, cache_hour, ..Bill::default() }
    }
}

/// All that is read, in the order in which it is.
fn blocks(body: &Value) -> Vec<Value> {
    let list = |value: &Value| match value {
        Value::Array(blocks) => blocks.clone(),
        Value::Null => Vec::new(),
        text => vec![json!({"type": "text", "text": text})],
    };
    let messages = body["messages"].as_array().into_iter().flatten();
    // What is cleared is no part of what is kept.
    let said = messages.filter(|message| message["clear_at"].is_null());
    let said = said.flat_map(|message| list(&message["content"]));
    list(&body["tools"]).into_iter().chain(list(&body["system"])).chain(said).collect()
}

fn is_marked(block: &Value) -> bool {
    !block["cache_control"].is_null()
}

fn keeps_an_hour(block: &Value) -> bool {
    block["cache_control"]["ttl"] == "1h"
}

/// What is to be kept in the cache.
fn marks(body: &Value) -> Result<(), Refusal> {
    let blocks = blocks(body);
    let marked = blocks.iter().filter(|block| is_marked(block)).count() + usize::from(is_marked(body));
    ensure(
        marked <= 4,
        format!("A maximum of 4 blocks with cache_control may be provided. Found {marked}."),
    )?;
    let inner = blocks.iter().filter(|block| block["type"] == "tool_result").map(|it| &it["content"]);
    let inner = inner.filter_map(Value::as_array).flatten().any(is_marked);
    ensure(!inner, "tool_result.content: cache_control: Extra inputs are not permitted")?;
    let minutes = json!({"type": "ephemeral"});
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let known = |block: &Value| [&minutes, &hour].contains(&&block["cache_control"]);
    // A mark of the whole request is one on what is read last.
    let all = || blocks.iter().chain([body]).filter(|block| is_marked(block));
    let mut shorter = all().skip_while(|block| keeps_an_hour(block));
    ensure(
        !shorter.any(keeps_an_hour),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
    )?;
    ensure(all().all(known), "cache_control.type: Input should be 'ephemeral'")
}

fn thought(
    at: usize,
    grant: &Grant,
    written: &Written,
    cut: bool,
    prefix: &mut Option<Prefix>,
    events: &mut Vec<Emitted>,
) {
    let text = if grant.shows { written.thought_text() } else { String::new() };
    let start = json!({"type": "thinking", "thinking": "", "signature": ""});
    let delta = |(text, words): (String, u64)| {
        let shown = if grant.shows { text } else { String::new() };
        (json!({"type": "thinking_delta", "thinking": shown}), words)
    };
    let signature =
        prefix.as_mut().map_or_else(|| sign(&grant.model, &text), |prefix| prefix.sign(&grant.model, &text));
    let signature = json!({"type": "signature_delta", "signature": signature});
    let signature = (!cut).then_some((signature, 0));
    block(at, &start, chunks(&written.thought).map(delta).chain(signature), events);
}

fn block(at: usize, start: &Value, deltas: impl Iterator<Item = (Value, u64)>, events: &mut Vec<Emitted>) {
    events.push(named(&json!({"type": "content_block_start", "index": at, "content_block": start}), 0));
    for (delta, words) in deltas {
        events.push(named(&json!({"type": "content_block_delta", "index": at, "delta": delta}), words));
    }
    events.push(named(&json!({"type": "content_block_stop", "index": at}), 0));
}

/// How much may be thought.
fn thinking(body: &Value, claude: Claude, most: u64) -> Result<Option<u64>, Refusal> {
    let thinking = &body["thinking"];
    let (is_between, is_forced) = (claude.off == Off::BetweenTools, claude.is_forced);
    let limit = match thinking["type"].as_str() {
        Some("between_tools") if is_between => None,
        Some("disabled") if is_between || claude.off == Off::Never => {
            return Err(wrong("thinking.type: `disabled` is not supported on this model"));
        }
        None if claude.off != Off::Unsaid => Some(u64::MAX),
        None | Some("disabled") => None,
        Some("adaptive") if claude.is_adaptive => Some(match body["output_config"]["effort"].as_str() {
            Some("low") => 20,
            Some("medium") => 100,
            _ => u64::MAX,
        }),
        Some("adaptive") => return Err(wrong("adaptive thinking is not supported on this model")),
        Some("enabled") if !claude.takes_budgets => {
            return Err(wrong(
                "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"",
            ));
        }
        Some("enabled") => {
            members("thinking.enabled.", thinking, &["type", "budget_tokens", "display"])?;
            let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
            ensure(
                budget >= 1024,
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            )?;
            ensure(budget < most, "`max_tokens` must be greater than `thinking.budget_tokens`")?;
            Some(budget)
        }
        Some(other) => return Err(wrong(format!("thinking.type: {other}"))),
    };
    let sampled = !body["temperature"].is_null() || !body["top_k"].is_null();
    ensure(!(sampled && limit.is_some()), "`temperature` may only be set to 1 when thinking is enabled")?;
    ensure(!sampled || claude.samples, "`temperature` is deprecated for this model")?;
    let temperature = body["temperature"].as_f64().unwrap_or(1.0);
    ensure((0.0..=1.0).contains(&temperature), "temperature: range: 0..1")?;
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    ensure(!forced || is_forced, "tool_choice: forced tool use is not supported on this model")?;
    ensure(!(forced && limit.is_some()), "Thinking may not be enabled when tool_choice forces tool use.")?;
    Ok(limit)
}

fn messages(body: &Value, model: &str, thinks: bool, claude: Claude) -> Result<(), Refusal> {
    let adaptive = claude.is_adaptive;
    let messages = body["messages"].as_array().ok_or_else(|| wrong("messages: Field required"))?;
    let last = messages.iter().rfind(|message| message["role"] != "system");
    let last = last.ok_or_else(|| wrong("messages: at least one message is required"))?;
    let prefills = last["role"] != "user";
    ensure(
        !prefills || !adaptive,
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )?;
    ensure(!prefills || !thinks, "`thinking` may not be enabled when prefilling the assistant's message.")?;
    let begun = last["content"]
        .as_array()
        .and_then(|blocks| blocks.last())
        .map_or(&last["content"], |block| &block["text"]);
    let is_bare = begun.as_str().is_none_or(|text| !text.ends_with(char::is_whitespace));
    ensure(!prefills || is_bare, "messages: final assistant content cannot end with trailing whitespace")?;
    let mut open = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        if claude.takes_late && message["role"] == "system" {
            instruction(at, message, messages)?;
            continue;
        }
        members(&format!("messages.{at}."), message, &["role", "content"])?;
        let blocks = message["content"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![json!({"type": "text", "text": message["content"]})]);
        let answered: BTreeSet<String> = ids(&blocks, "tool_result", "tool_use_id");
        ensure(
            open.is_subset(&answered),
            format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {open:?}"
            ),
        )?;
        ensure(
            answered.is_subset(&open),
            format!("messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks"),
        )?;
        let first_other =
            blocks.iter().position(|block| block["type"] != "tool_result").unwrap_or(usize::MAX);
        let late =
            blocks.iter().skip(first_other.min(blocks.len())).any(|block| block["type"] == "tool_result");
        ensure(!late, "`tool_result` blocks must come first")?;
        open = ids(&blocks, "tool_use", "id");
        for (number, block) in blocks.iter().enumerate() {
            check_block(&format!("messages.{at}.content.{number}"), block, model)?;
        }
    }
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    let calls = |at: &usize| messages[*at]["content"].to_string().contains("\"tool_use\"");
    if let Some(at) = last.filter(calls).filter(|_| thinks && !adaptive) {
        let first = messages[at]["content"][0]["type"].as_str().unwrap_or_default();
        ensure(
            matches!(first, "thinking" | "redacted_thinking"),
            format!(
                "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`."
            ),
        )?;
    }
    Ok(())
}

/// Instructions among the messages stand behind the user's turn, and before the model's.
fn instruction(at: usize, message: &Value, messages: &[Value]) -> Result<(), Refusal> {
    members(&format!("messages.{at}."), message, &["role", "content", "clear_at", "output_config"])?;
    // One that only says how deep to think may stand anywhere.
    if message["content"] == json!([]) && message["output_config"]["effort"].is_string() {
        return Ok(());
    }
    let role = |at: Option<usize>| at.and_then(|at| messages.get(at)).map(|message| &message["role"]);
    let is_behind = role(at.checked_sub(1)).is_some_and(|role| role == "user" || role == "system");
    let is_before = role(Some(at + 1)).is_none_or(|role| role == "assistant" || role == "system");
    ensure(is_behind && is_before, format!("messages.{at}: role 'system' must follow a user turn"))?;
    let text = message["content"].is_string();
    ensure(text || message["clear_at"].is_null(), format!("messages.{at}: clear_at: text only"))
}

fn ids(blocks: &[Value], kind: &str, member: &str) -> BTreeSet<String> {
    let of_kind = blocks.iter().filter(|block| block["type"] == kind);
    of_kind.map(|block| block[member].as_str().unwrap_or_default().to_owned()).collect()
}

fn check_block(place: &str, block: &Value, model: &str) -> Result<(), Refusal> {
    let kind = block["type"].as_str().unwrap_or_default();
    let known = BLOCKS.iter().find(|(known, _)| *known == kind);
    let (_, known) = known.ok_or_else(|| wrong(format!("{place}: Input tag '{kind}' found")))?;
    members(&format!("{place}."), block, known)?;
    match kind {
        "text" => ensure(
            count(&block["text"]) > 0,
            "messages: text content blocks must contain non-whitespace text",
        ),
        // Checked with all that stands before it.
        "thinking" if is_bound(model) => Ok(()),
        "thinking" => {
            let right = sign(model, block["thinking"].as_str().unwrap_or_default());
            ensure(block["signature"] == right, format!("{place}: Invalid `signature` in `thinking` block"))
        }
        "tool_use" => {
            let id = block["id"].as_str().unwrap_or_default();
            let allowed =
                id.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it)) && !id.is_empty();
            ensure(allowed, format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"))?;
            ensure(
                block["input"].is_object(),
                format!("{place}.tool_use.input: Input should be a valid dictionary"),
            )
        }
        _ => Ok(()),
    }
}

fn tools(body: &Value) -> Result<(), Refusal> {
    for (at, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        members(
            &format!("tools.{at}."),
            tool,
            &["name", "description", "input_schema", "strict", "cache_control", "type"],
        )?;
        ensure(
            tool["input_schema"]["type"] == "object",
            format!("tools.{at}.custom.input_schema.type: Field required"),
        )?;
    }
    ensure(
        body["tool_choice"].is_null() || body["tools"].is_array(),
        "tool_choice: may only be specified while providing tools",
    )
}

/// An image is of one of four types, by its right name.
fn image_types(body: &Value) -> Result<(), Refusal> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    for source in blocks.map(|block| &block["source"]).filter(|source| source["type"] == "base64") {
        let kind = source["media_type"].as_str().unwrap_or_default();
        ensure(
            ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&kind),
            "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        )?;
    }
    Ok(())
}

fn output(body: &Value, claude: Claude) -> Result<(), Refusal> {
    let output = &body["output_config"];
    members("output_config.", output, &["effort", "format", "task_budget"])?;
    let effort = &output["effort"];
    ensure(effort.is_null() || claude.is_adaptive, "This model does not support the effort parameter.")?;
    let known = effort.as_str().is_none_or(|word| claude.efforts.contains(&word));
    ensure(known, format!("output_config.effort: Input should be one of {:?}", claude.efforts))?;
    ensure(
        output["format"].is_null() || output["format"]["schema"].is_object(),
        "output_config.format.schema: Field required",
    )
}

#[test]
fn an_hour_behind_minutes_is_refused_wherever_it_is_marked() {
    let (none, minutes) = (&Value::Null, &json!({"type": "ephemeral"}));
    let hour = &json!({"type": "ephemeral", "ttl": "1h"});
    let is_taken = |tool: &Value, said: &Value, whole: &Value| {
        let content = json!([{"type": "text", "text": "a", "cache_control": said}]);
        let messages = json!([{"role": "user", "content": content}]);
        let tools = json!([{"name": "t", "cache_control": tool}]);
        marks(&json!({"cache_control": whole, "tools": tools, "messages": messages})).is_ok()
    };
    assert!(is_taken(hour, hour, minutes) && is_taken(hour, minutes, none) && is_taken(none, none, hour));
    assert!(
        !is_taken(minutes, hour, none) && !is_taken(minutes, none, hour) && !is_taken(none, minutes, hour)
    );
}
