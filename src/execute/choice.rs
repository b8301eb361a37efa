//! One choice to be generated: its input, its events, and its errors. Leaf types, used by the driver and by its callers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use stint_backend::{Backend, Failure};
use stint_types::chat::{AnswerNote, ChoiceEvent, Request};

use super::event_channel::EventSize;

/// One choice to be made.
#[derive(Debug)]
pub struct ChoiceJob {
    /// Who makes it.
    pub backend: Arc<dyn Backend>,
    /// What is asked.
    pub request: Arc<Request>,
    /// Which choice it is.
    pub index: u32,
    /// Fixes the draw.
    pub seed: u64,
    /// When the whole answer must be there.
    pub deadline: Instant,
    /// How long before that the thought is cut, so that hand-off and solution still fit; nothing if the
    /// caller stated no deadline.
    pub cut_before: Option<Duration>,
}

/// Why a choice did not finish.
#[derive(Debug)]
pub enum ChoiceError {
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    Disconnected,
}

/// About what a JSON value takes beside its texts.
const VALUE: usize = 64;

/// About what a JSON value takes with all in it.
fn value_bytes(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// An event of one choice.
pub type IndexedEvent = (u32, ChoiceEvent);

impl EventSize for ChoiceEvent {
    fn text_bytes(&self) -> usize {
        match self {
            ChoiceEvent::Thought(text) | ChoiceEvent::Answer(text) => text.len(),
            ChoiceEvent::Signed(thought) => thought.block.len(),
            ChoiceEvent::Logprobs(entries) => entries.iter().map(value_bytes).sum(),
            ChoiceEvent::Note(AnswerNote::Refusal) => 0,
            ChoiceEvent::Note(AnswerNote::Phase(word)) => word.len(),
            ChoiceEvent::Note(AnswerNote::Declined(why)) => why.as_ref().map_or(0, |why| why.len()),
            ChoiceEvent::Note(
                AnswerNote::Annotation(value) | AnswerNote::Image(value) | AnswerNote::Audio(value),
            ) => value_bytes(value),
            ChoiceEvent::ToolCall(call) => {
                let named = [&call.id, &call.name].map(|text| text.as_ref().map_or(0, String::len));
                call.arguments.len() + named.iter().sum::<usize>()
            }
        }
    }
}

impl EventSize for IndexedEvent {
    fn text_bytes(&self) -> usize {
        self.1.text_bytes()
    }
}

impl ChoiceJob {
    /// The same, with another draw.
    pub(super) fn with_seed(&self, seed: u64) -> ChoiceJob {
        ChoiceJob {
            backend: Arc::clone(&self.backend),
            request: Arc::clone(&self.request),
            index: self.index,
            seed,
            deadline: self.deadline,
            cut_before: self.cut_before,
        }
    }
}
