//! The blocks of a turn of the model, in the order in which they were written.

use serde_json::{Value, json};

use crate::remote::caller_options::parse_arguments;
use stint_types::chat::ToolCall;

use super::placed_thought::PlacedThought;

/// A turn that is being put together from its text, its calls and its thoughts.
#[derive(Debug)]
pub(super) struct AssistantTurn<'m> {
    text: &'m str,
    calls: &'m [ToolCall],
    /// How many bytes of the text are written, and how many characters.
    written: usize,
    letters: usize,
    /// How many of the calls are.
    called: usize,
    blocks: Vec<Value>,
}

impl<'m> AssistantTurn<'m> {
    pub(super) fn new(text: &'m str, calls: &'m [ToolCall]) -> AssistantTurn<'m> {
        AssistantTurn { text, calls, written: 0, letters: 0, called: 0, blocks: Vec::new() }
    }

    /// Adds a block that is none of these.
    pub(super) fn push(&mut self, block: Value) {
        self.blocks.push(block);
    }

    /// Adds a thought, behind all that stood before it.
    pub(super) fn think(&mut self, thought: PlacedThought) {
        while self.called < thought.calls.min(self.calls.len()) {
            self.speak(thought.starts.get(self.called).copied().unwrap_or(thought.letters));
            self.call();
        }
        self.speak(thought.letters);
        self.push(thought.block);
    }

    /// Adds what is left, calls last.
    pub(super) fn into_blocks(mut self) -> Vec<Value> {
        self.speak(usize::MAX);
        while self.called < self.calls.len() {
            self.call();
        }
        self.blocks
    }

    /// Adds the text up to so many characters. Blocks of text may not be blank.
    fn speak(&mut self, letters: usize) {
        // What is written is not counted again: a turn may have thousands of thoughts.
        let rest = &self.text[self.written..];
        let end =
            rest.char_indices().nth(letters.saturating_sub(self.letters)).map_or(rest.len(), |(at, _)| at);
        let more = &rest[..end];
        self.written += end;
        self.letters = self.letters.max(letters);
        if !more.trim().is_empty() {
            self.push(text_block(more));
        }
    }

    fn call(&mut self) {
        let ToolCall { id, name, arguments } = &self.calls[self.called];
        let (id, input) = (sanitized_id(id), parse_arguments(arguments));
        self.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        self.called += 1;
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The id of a call, in the characters that are allowed there.
pub(super) fn sanitized_id(id: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    id.chars().map(|character| if allowed(character) { character } else { '_' }).collect()
}
