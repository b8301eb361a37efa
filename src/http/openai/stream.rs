//! Answers out as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::chat::Event;
use crate::gateway::{Flight, Receipt, Report};
use crate::units::Timestamp;

use super::render::{Look, Style, budget, usage};
use super::signed;
use crate::http::error::Problem;
use crate::http::repeat::Kept;

/// Keeps a silent stream alive; clients skip it.
const COMMENT: &str = ": thinking\n\n";

/// What the log says of a flight that ends without its last report.
pub(crate) const LOST: &str = "a flight ended without saying how";

/// Writes the chunks of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Chunks {
    id: String,
    model: Arc<str>,
    created: i64,
    include_usage: bool,
    look: Look,
    begun: Vec<bool>,
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
        json!([{ "index": index, "delta": delta, "logprobs": null, "finish_reason": finish }])
    }

    /// The text that one report puts on the wire; nothing for a thought that is not to be shown.
    fn write(&mut self, report: Report) -> String {
        match report {
            Report::Event(index, event) => match self.event(event) {
                Some(delta) => {
                    let choices = self.delta(index, delta, None);
                    data(&self.chunk(choices, &[]))
                }
                None => String::new(),
            },
            Report::Done(receipt) => self.done(&receipt),
            // No [DONE] after an error: a clean end would look like success.
            Report::Failed(refusal) => data(&Problem::from(refusal).to_json()),
        }
    }

    fn event(&self, event: Event) -> Option<Map<String, Value>> {
        let mut delta = Map::new();
        match event {
            Event::Answer(text) => {
                delta.insert("content".into(), text.into());
            }
            Event::Thought(_) | Event::Signed(_) if !self.look.thoughts => return None,
            Event::ToolCall(_) if self.look.style == Style::Text => return None,
            Event::Signed(signed) => {
                delta.insert("reasoning_details".into(), json!([signed::write(signed)]));
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

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

struct Streaming {
    flight: Flight,
    chunks: Chunks,
    first: Option<Report>,
    /// True where a silence has decided for the answer's status: a comment goes out with it.
    silent: bool,
    heartbeat: Duration,
    /// Where the stream is under an idempotency key.
    kept: Option<Kept>,
    done: bool,
}

/// The body of a streamed answer that begins with `first`. A comment is sent whenever nothing else was for as
/// long as `heartbeat`.
pub(crate) fn stream(
    flight: Flight,
    first: Option<Report>,
    chunks: Chunks,
    heartbeat: Duration,
    kept: Option<Kept>,
) -> Body {
    let silent = first.is_none();
    let state = Streaming { flight, chunks, first, silent, heartbeat, kept, done: false };
    Body::from_stream(pieces(state))
}

fn pieces(state: Streaming) -> impl Stream<Item = Result<Bytes, Infallible>> {
    unfold(state, |mut state| async move {
        let text = state.next().await?;
        Some((Ok(Bytes::from(text)), state))
    })
}

impl Streaming {
    async fn next(&mut self) -> Option<String> {
        if self.done {
            return None;
        }
        if std::mem::take(&mut self.silent) {
            return Some(COMMENT.to_owned());
        }
        let silent_until = Instant::now() + self.heartbeat;
        loop {
            let report = match self.first.take() {
                Some(report) => Some(report),
                None => match tokio::time::timeout_at(silent_until, self.flight.next()).await {
                    Ok(report) => report,
                    Err(_) => return Some(COMMENT.to_owned()),
                },
            };
            self.done = !matches!(report, Some(Report::Event(..)));
            let Some(report) = report else {
                // An end without an error would look like success.
                return Some(data(&Problem::internal(self.flight.id(), LOST).to_json()));
            };
            let cost = match &report {
                Report::Done(receipt) => Some(receipt.cost.to_string()),
                Report::Event(..) | Report::Failed(_) => None,
            };
            let text = self.chunks.write(report);
            self.keep(&text, cost).await;
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    /// The end is kept before it is told, so that whoever saw it can rely on it.
    async fn keep(&mut self, text: &str, cost: Option<String>) {
        if let Some(kept) = &mut self.kept {
            kept.push(text);
        }
        if self.done
            && let Some(kept) = self.kept.take()
        {
            kept.end(cost).await;
        }
    }
}
