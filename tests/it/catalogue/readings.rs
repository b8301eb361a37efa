//! How what a model writes is read: its tags, its calls, and what it costs at an hour.

use serde_json::{Map, Value, json};
use stint::config::ModelSource;
use stint_backend::remote::openai::Settings;
use stint_prompt::tool_calls::{AnswerSegment, ToolCallParser};
use stint_types::catalog::Model;
use stint_types::units::Timestamp;

use super::pairs::{Group, Reading, configured};

/// Where readings do not hold.
pub(super) fn faults(groups: &[Group]) -> Vec<String> {
    let configured = configured(groups, |_| "https://serves.example".to_owned());
    let mut faults = Vec::new();
    for (group, models) in groups.iter().zip(configured) {
        for (name, (model, source)) in group.models.iter().zip(&models) {
            for Reading { writes, reads } in &group.readings {
                let is = read(model, source, writes, reads);
                if is != *reads {
                    faults.push(format!("{} {writes}\n   reads {is}\n     not {reads}", group.label(name)));
                }
            }
        }
    }
    faults
}

/// What is read of it, so far as the pair names it.
fn read(model: &Model, source: &ModelSource, writes: &str, reads: &Value) -> Value {
    let named = reads.as_object().unwrap().keys();
    let read = named.map(|name| {
        let value = match &**name {
            "price_input" => price(model, writes),
            "calls" => calls(chat(source), writes),
            "thought" | "answer" => parts(chat(source), writes)[name].clone(),
            "hand_off" => json!(chat(source).hand_off),
            other => panic!("nothing reads {other}"),
        };
        (name.clone(), value)
    });
    Value::Object(read.collect::<Map<String, Value>>())
}

fn chat(source: &ModelSource) -> &Settings {
    match source {
        ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => settings,
        other => panic!("{other:?}"),
    }
}

/// What a million tokens read cost at a moment.
fn price(model: &Model, at: &str) -> Value {
    let at: Timestamp = at.parse().unwrap();
    let tariff = model.tariff.unwrap().between(at, at);
    json!(tariff.rates.list.input.per_million_tokens.to_string())
}

/// The calls in a text, each with its arguments.
fn calls(settings: &Settings, text: &str) -> Value {
    let Some(syntax) = settings.tool_syntax else { return Value::Null };
    let mut parser = ToolCallParser::new(syntax, "call".to_owned());
    let mut segments = parser.push(text);
    segments.extend(parser.finish());
    let call = |segment| match segment {
        AnswerSegment::Call(call) => {
            Some(json!([call.name, serde_json::from_str::<Value>(&call.arguments).unwrap()]))
        }
        AnswerSegment::Text(_) => None,
    };
    segments.into_iter().filter_map(call).collect()
}

/// A text by the tags around its thought.
fn parts(settings: &Settings, text: &str) -> Value {
    let is_begun = settings.starts_in_thinking;
    let begun = if is_begun { Some(text) } else { text.strip_prefix(&*settings.start_tag) };
    let parts = begun.and_then(|rest| rest.split_once(&*settings.end_tag));
    let (thought, answer) = parts.unwrap_or(("", text));
    json!({ "thought": thought.trim(), "answer": answer.trim() })
}
