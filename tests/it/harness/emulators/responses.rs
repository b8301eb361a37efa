//! OpenAI's Responses. Reasoning is hidden: its summary is short, and its words are billed.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, Uri};
use serde_json::{Value, json};

use super::{
    Api, Bill, Emitted, Grant, KEY, Refusal, Written, chunks, count, efforts, named, said, schemas, sign,
    unknown,
};

/// The provider.
#[derive(Debug, Default)]
pub(crate) struct Responses;

const MEMBERS: [&str; 18] = [
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "include",
    "reasoning",
    "max_output_tokens",
    "temperature",
    "top_p",
    "text",
    "tools",
    "tool_choice",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "user",
];

fn refuse(status: u16, code: &str, message: impl Into<String>) -> Refusal {
    let error =
        json!({"message": message.into(), "type": "invalid_request_error", "param": null, "code": code});
    (status, json!({"error": error}))
}

fn ensure(right: bool, code: &str, message: impl Into<String>) -> Result<(), Refusal> {
    if right { Ok(()) } else { Err(refuse(400, code, message)) }
}

fn members(place: &str, value: &Value, known: &[&str]) -> Result<(), Refusal> {
    match unknown(value, known) {
        Some(name) => Err(refuse(400, "unknown_parameter", format!("Unknown parameter: '{place}{name}'."))),
        None => Ok(()),
    }
}

impl Api for Responses {
    const BASE: &'static str = "/v1";

    fn check(&self, uri: &Uri, headers: &HeaderMap, body: &Value) -> Result<Grant, Refusal> {
        if uri.path() != "/v1/responses" {
            return Err(refuse(404, "", "Invalid URL"));
        }
        if said(headers, "authorization") != Some(&format!("Bearer {KEY}")) {
            return Err(refuse(401, "invalid_api_key", "Incorrect API key provided."));
        }
        members("", body, &MEMBERS)?;
        members("reasoning.", &body["reasoning"], &["effort", "summary"])?;
        let unsupported = "Unsupported parameter: 'temperature' is not supported with this model.";
        ensure(body["temperature"].is_null(), "unsupported_parameter", unsupported)?;
        let most = body["max_output_tokens"].as_u64().unwrap_or(u64::MAX);
        let least = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.";
        ensure(most >= 16, "integer_below_min_value", least)?;
        ensure(body["store"] == false, "", "this organization keeps nothing")?;
        let thinking = match body["reasoning"]["effort"].as_str() {
            Some("none") => None,
            Some("minimal") => Some(10),
            Some("low") => Some(50),
            None | Some("medium" | "high" | "xhigh") => Some(500),
            // From GPT-5.6 on, by developers.openai.com/api/docs/guides/reasoning (2026-11).
            Some("max") if knows_max(body) => Some(500),
            Some(other) => {
                return Err(refuse(400, "unsupported_value", format!("Unsupported value: '{other}'")));
            }
        };
        let model = body["model"].as_str().unwrap_or_default();
        items(body, model)?;
        tools(body)?;
        let read = [&body["instructions"], &body["tools"], &body["input"]];
        let bill = Bill { prompt: read.into_iter().map(count).sum(), ..Bill::default() };
        let shows = body["reasoning"]["summary"].is_string();
        Ok(Grant { model: model.to_owned(), bill, thinking, most, shows, ..Grant::default() })
    }

    fn events(&self, grant: &Grant, written: &Written) -> Vec<Emitted> {
        let mut output = Output::default();
        output.say("created", json!({"response": response(grant, "in_progress")}), 0);
        let cut = written.limited && written.answer.is_empty();
        output.reason(grant, &written.thought, cut);
        output.answer(written);
        for (number, call) in written.calls.iter().enumerate() {
            output.call(number, call);
        }
        let (status, word) =
            if written.limited { ("incomplete", "max_output_tokens") } else { ("completed", "") };
        let mut response = response(grant, status);
        response["output"] = json!(output.items);
        response["usage"] = usage(grant, written);
        if written.limited {
            response["incomplete_details"] = json!({"reason": word});
        }
        output.say(status, json!({"response": response}), 0);
        output.events
    }

    fn failure(&self) -> Emitted {
        let error = json!({"code": "server_error", "message": "The server had an error."});
        named(&json!({"type": "response.failed", "response": {"status": "failed", "error": error}}), 0)
    }
}

fn knows_max(body: &Value) -> bool {
    let efforts = efforts::of(body["model"].as_str().unwrap_or_default());
    efforts.iter().any(|(word, _)| *word == "max")
}

/// What is written, as it is told.
#[derive(Debug, Default)]
struct Output {
    events: Vec<Emitted>,
    items: Vec<Value>,
}

impl Output {
    fn say(&mut self, kind: &str, mut event: Value, words: u64) {
        event["type"] = json!(format!("response.{kind}"));
        event["sequence_number"] = json!(self.events.len());
        self.events.push(named(&event, words));
    }

    /// An event about the item that is being written.
    fn tell(&mut self, kind: &str, mut event: Value, words: u64) {
        event["output_index"] = json!(self.items.len());
        self.say(kind, event, words);
    }

    fn begin(&mut self, item: &Value, words: u64) {
        self.tell("output_item.added", json!({"item": item}), words);
    }

    fn end(&mut self, item: Value) {
        self.tell("output_item.done", json!({"item": item}), 0);
        self.items.push(item);
    }

    fn reason(&mut self, grant: &Grant, thought: &[String], cut: bool) {
        if thought.is_empty() {
            return;
        }
        let mut item = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        self.begin(&item, thought.len() as u64);
        if grant.shows {
            let part = json!({"type": "summary_text", "text": ""});
            let place = json!({"item_id": "rs_1", "summary_index": 0, "part": part});
            self.tell("reasoning_summary_part.added", place, 0);
            let delta = json!({"item_id": "rs_1", "summary_index": 0, "delta": "Considered."});
            self.tell("reasoning_summary_text.delta", delta, 0);
            item["summary"] = json!([{"type": "summary_text", "text": "Considered."}]);
        }
        item["encrypted_content"] = json!(sign(&grant.model, "rs_1"));
        if !cut {
            self.end(item);
        }
    }

    fn answer(&mut self, written: &Written) {
        if written.answer.is_empty() {
            return;
        }
        let part = |text: String| json!({"type": "output_text", "text": text, "annotations": []});
        let mut item = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
        item["status"] = json!("in_progress");
        self.begin(&item, 0);
        let place = json!({"item_id": "msg_1", "content_index": 0, "part": part(String::new())});
        self.tell("content_part.added", place, 0);
        for (text, words) in chunks(&written.answer) {
            let delta = json!({"item_id": "msg_1", "content_index": 0, "delta": text, "logprobs": []});
            self.tell("output_text.delta", delta, words);
        }
        item["content"] = json!([part(written.answer_text())]);
        item["status"] = json!("completed");
        self.end(item);
    }

    fn call(&mut self, number: usize, call: &(&'static str, Value)) {
        let (id, text) = (format!("fc_{number}"), call.1.to_string());
        let mut item = json!({"type": "function_call", "id": id, "name": call.0, "arguments": ""});
        item["call_id"] = json!(format!("call_{number}"));
        item["status"] = json!("in_progress");
        self.begin(&item, 0);
        let delta = json!({"item_id": id, "delta": text});
        self.tell("function_call_arguments.delta", delta, super::call_words(call));
        item["arguments"] = json!(text);
        item["status"] = json!("completed");
        self.end(item);
    }
}

fn response(grant: &Grant, status: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 0, "model": grant.model, "status": status,
        "output": [], "tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "error": null,
        "incomplete_details": null, "usage": null, "instructions": null, "metadata": {},
    })
}

fn usage(grant: &Grant, written: &Written) -> Value {
    let (prompt, output) = (grant.bill.prompt, written.count());
    json!({
        "input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": written.thought.len()},
        "total_tokens": prompt + output,
    })
}

/// Calls have outputs and outputs calls; reasoning is this model's own, and something follows it.
fn items(body: &Value, model: &str) -> Result<(), Refusal> {
    let items = body["input"].as_array().cloned().unwrap_or_default();
    ensure(!items.is_empty(), "", "Missing required parameter: 'input'.")?;
    let ids = |kind: &str| -> BTreeSet<String> {
        let of_kind = items.iter().filter(|item| item["type"] == kind);
        of_kind.map(|item| item["call_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (calls, outputs) = (ids("function_call"), ids("function_call_output"));
    ensure(calls.is_subset(&outputs), "", format!("No tool output found for function call {calls:?}."))?;
    ensure(
        outputs.is_subset(&calls),
        "",
        format!("No tool call found for function call output {outputs:?}."),
    )?;
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}].");
        match item["type"].as_str() {
            Some("reasoning") => {
                members(&place, item, &["type", "id", "summary", "encrypted_content"])?;
                let own = item["encrypted_content"] == sign(model, item["id"].as_str().unwrap_or_default());
                ensure(own, "invalid_encrypted_content", "The encrypted content could not be verified.")?;
                let follows = items
                    .get(at + 1)
                    .is_some_and(|next| next["type"] == "function_call" || next["role"] == "assistant");
                ensure(
                    follows,
                    "",
                    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                )?;
            }
            Some("function_call") => members(&place, item, &["type", "call_id", "name", "arguments"])?,
            Some("function_call_output") => members(&place, item, &["type", "call_id", "output"])?,
            _ => members(&place, item, &["type", "role", "content"])?,
        }
    }
    Ok(())
}

fn tools(body: &Value) -> Result<(), Refusal> {
    for (at, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        members(&format!("tools[{at}]."), tool, &["type", "name", "description", "parameters", "strict"])?;
        ensure(
            tool["name"].is_string(),
            "missing_required_parameter",
            format!("Missing required parameter: 'tools[{at}].name'."),
        )?;
        strict(tool, "parameters")?;
    }
    strict(&body["text"]["format"], "schema")
}

/// A schema that is to be held to says all that strict ones must.
fn strict(held: &Value, schema: &str) -> Result<(), Refusal> {
    let why =
        Some(held).filter(|held| held["strict"] == true).and_then(|held| schemas::strict(&held[schema]));
    ensure(why.is_none(), "invalid_json_schema", format!("Invalid schema: {why:?}"))
}
