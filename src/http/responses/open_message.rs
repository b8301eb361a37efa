//! The message that is open while its answer is written: an item with one part, of text or of a refusal.

use serde_json::{Value, json};

use super::annotations;

/// A message so far.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenMessage {
    /// True if it declines to answer.
    pub(super) refuses: bool,
    /// What it is for, where its model says so.
    phase: Option<Box<str>>,
    text: String,
    /// The chances of its tokens.
    logprobs: Vec<Value>,
    /// How many characters of the answer came before it.
    letters_before: usize,
    annotations: Vec<Value>,
}

impl OpenMessage {
    /// A message without text yet.
    pub(super) fn new(refuses: bool, phase: Option<Box<str>>, letters_before: usize) -> OpenMessage {
        OpenMessage { refuses, phase, letters_before, ..OpenMessage::default() }
    }

    /// The item as it is when it is opened, without a part.
    pub(super) fn empty_item(&self, id: &str) -> Value {
        let mut item =
            json!({ "id": id, "type": "message", "role": "assistant", "status": "completed", "content": [] });
        if let Some(phase) = &self.phase {
            item["phase"] = (**phase).into();
        }
        item
    }

    /// The item with its part.
    pub(super) fn item(&self, id: &str) -> Value {
        let mut item = self.empty_item(id);
        item["content"] = json!([self.part()]);
        item
    }

    /// Its only part so far.
    pub(super) fn part(&self) -> Value {
        if self.refuses {
            json!({ "type": "refusal", "refusal": self.text })
        } else {
            json!({ "type": "output_text", "text": self.text, "annotations": self.annotations, "logprobs": self.logprobs })
        }
    }

    /// Adds some text, with the chances of its tokens: the event that tells it, and its members.
    pub(super) fn push(&mut self, text: &str, logprobs: &[Value]) -> (&'static str, Value) {
        self.text.push_str(text);
        if self.refuses {
            return ("response.refusal.delta", json!({ "delta": text }));
        }
        self.logprobs.extend_from_slice(logprobs);
        ("response.output_text.delta", json!({ "delta": text, "logprobs": logprobs }))
    }

    /// Nothing more comes but chances of tokens whose text was withheld: the event that tells all, and its members.
    pub(super) fn finish(&mut self, logprobs: &[Value]) -> (&'static str, Value) {
        if self.refuses {
            return ("response.refusal.done", json!({ "refusal": self.text }));
        }
        self.logprobs.extend_from_slice(logprobs);
        ("response.output_text.done", json!({ "text": self.text, "logprobs": self.logprobs }))
    }

    /// How many characters of the answer came up to here.
    pub(super) fn letters(&self) -> usize {
        self.letters_before + self.text.chars().count()
    }

    /// Adds a source of the text, in the form of chat completions: the members of the event that tells it. Nothing for what
    /// is none here.
    pub(super) fn annotate(&mut self, source: &Value) -> Option<Value> {
        let place =
            if self.refuses { None } else { annotations::flat(source, self.letters_before, &self.text) };
        let annotation = place?;
        let index = self.annotations.len();
        self.annotations.push(annotation.clone());
        Some(json!({ "annotation_index": index, "annotation": annotation }))
    }
}
