//! Answers out as server-sent events.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::chat::Event;
use crate::gateway::{Flight, Receipt};
use crate::units::Timestamp;

use super::render::{Look, Style, budget, told, usage};
use crate::http::error::Problem;
use crate::http::events;
use crate::http::signed;

/// Keeps a silent stream alive; clients skip it.
const COMMENT: &str = ": thinking\n\n";

/// Writes the chunks of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Chunks {
    id: String,
    model: Arc<str>,
    created: i64,
    include_usage: bool,
    look: Look,
    begun: Vec<bool>,
    /// The chances of each choice's next tokens: they go out with their text.
    logprobs: Vec<Value>,
}

impl Chunks {
    pub(crate) fn new(flight: &Flight, created: Timestamp, include_usage: bool, look: Look) -> Chunks {
        let choices = usize::try_from(flight.choices()).unwrap_or(usize::MAX);
        Chunks {
            id: look.style.id(flight.id()),
            model: flight.model().clone(),
            created: created.as_seconds(),
            include_usage,
            look,
            begun: vec![false; choices],
            logprobs: vec![Value::Null; choices],
        }
    }

    fn chunk(&self, choices: Value, more: &[(&str, Value)]) -> Value {
        let mut chunk = Map::new();
        chunk.insert("id".into(), self.id.clone().into());
        chunk.insert("object".into(), self.look.style.objects().1.into());
        chunk.insert("created".into(), self.created.into());
        chunk.insert("model".into(), (*self.model).into());
        chunk.insert("choices".into(), choices);
        if self.include_usage {
            chunk.insert("usage".into(), Value::Null);
        }
        chunk.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        chunk.into()
    }

    fn delta(&mut self, index: u32, delta: Map<String, Value>, finish: Option<&str>) -> Value {
        match self.look.style {
            Style::Chat => self.chat_delta(index, delta, finish),
            Style::Text => {
                let text = delta.get("content").cloned().unwrap_or_else(|| "".into());
                json!([{ "index": index, "text": text, "logprobs": null, "finish_reason": finish }])
            }
        }
    }

    fn chat_delta(&mut self, index: u32, mut delta: Map<String, Value>, finish: Option<&str>) -> Value {
        let begun = self.begun.get_mut(usize::try_from(index).unwrap_or(usize::MAX));
        if begun.is_some_and(|begun| !std::mem::replace(begun, true)) {
            delta.insert("role".into(), "assistant".into());
        }
        let logprobs = self.logprobs.get_mut(usize::try_from(index).unwrap_or(usize::MAX)).map(Value::take);
        json!([{ "index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish }])
    }

    fn event(&self, event: Event) -> Option<Map<String, Value>> {
        let mut delta = Map::new();
        match event {
            Event::Answer(text) => {
                delta.insert("content".into(), text.into());
            }
            Event::Logprobs(_) => return None,
            Event::Thought(_) | Event::Signed(_) if !self.look.thoughts => return None,
            Event::ToolCall(_) if self.look.style == Style::Text => return None,
            Event::Signed(signed) => {
                delta.insert("reasoning_details".into(), json!([signed::write(&signed)]));
            }
            Event::Thought(text) => {
                if self.look.mirror {
                    delta.insert("reasoning".into(), text.clone().into());
                }
                delta.insert("reasoning_content".into(), text.into());
            }
            Event::ToolCall(call) => {
                let mut function = Map::new();
                if let Some(name) = call.name {
                    function.insert("name".into(), name.into());
                }
                function.insert("arguments".into(), call.arguments.into());
                let mut piece = json!({ "index": call.index, "function": function });
                if let Some(id) = call.id {
                    piece["id"] = id.into();
                    piece["type"] = "function".into();
                }
                delta.insert("tool_calls".into(), json!([piece]));
            }
        }
        Some(delta)
    }

    /// The finishing chunks, the budget on the last of them, usage where it was asked for, and the end mark.
    fn done(&mut self, receipt: &Receipt) -> String {
        let mut text = String::new();
        let last = receipt.choices.len().saturating_sub(1);
        for (at, choice) in receipt.choices.iter().enumerate() {
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            let choices = self.delta(index, Map::new(), Some(choice.finish.word()));
            let budget = (at == last).then(|| ("budget", budget(receipt)));
            text += &data(&self.chunk(choices, budget.as_slice()));
        }
        if self.include_usage {
            text += &data(&self.chunk(json!([]), &[("usage", usage(receipt))]));
        }
        text + "data: [DONE]\n\n"
    }
}

impl events::Chunks for Chunks {
    fn said(&mut self, choice: u32, event: Event) -> String {
        if let Event::Logprobs(entries) = event {
            if let Some(waiting) = self.logprobs.get_mut(usize::try_from(choice).unwrap_or(usize::MAX)) {
                *waiting = told(entries);
            }
            return String::new();
        }
        let Some(delta) = self.event(event) else { return String::new() };
        let choices = self.delta(choice, delta, None);
        data(&self.chunk(choices, &[]))
    }

    fn ended(&mut self, receipt: &Receipt) -> String {
        self.done(receipt)
    }

    fn silence(&self) -> &'static str {
        COMMENT
    }

    /// No `[DONE]` after it.
    fn problem(&self, problem: &Problem) -> String {
        data(&problem.to_json())
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
