//! The blocks of a turn of the model, in the order in which they were written.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::remote::caller_options::parse_arguments;
use stint_types::chat::ToolCall;

use super::placed_thought::PlacedThought;

/// A turn that is being put together from its texts, its calls and its thoughts.
#[derive(Debug)]
pub(super) struct AssistantTurn<'m> {
    /// What is not written yet of its texts, and how many of their characters are.
    texts: VecDeque<&'m str>,
    letters: usize,
    calls: &'m [ToolCall],
    /// What the calls are called here.
    ids: Vec<String>,
    /// How many of the calls are written.
    called: usize,
    blocks: Vec<Value>,
}

impl<'m> AssistantTurn<'m> {
    /// Of these texts and these calls, which have these ids here.
    pub(super) fn new(
        texts: impl Iterator<Item = &'m str>,
        calls: &'m [ToolCall],
        ids: Vec<String>,
    ) -> AssistantTurn<'m> {
        AssistantTurn { texts: texts.collect(), letters: 0, calls, ids, called: 0, blocks: Vec::new() }
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

    /// Adds the texts up to so many characters, each as a block.
    fn speak(&mut self, letters: usize) {
        // What is written is not counted again: a turn may have thousands of thoughts.
        while let Some(text) = self.texts.pop_front() {
            let left = letters.saturating_sub(self.letters);
            let Some((at, _)) = text.char_indices().nth(left) else {
                self.letters += text.chars().count();
                self.say(text);
                continue;
            };
            let (more, rest) = text.split_at(at);
            self.letters += left;
            self.say(more);
            self.texts.push_front(rest);
            return;
        }
    }

    /// Blocks of text may not be blank.
    fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.push(text_block(text));
        }
    }

    fn call(&mut self) {
        let ToolCall { id, name, arguments } = &self.calls[self.called];
        let (id, input) = (self.ids.get(self.called).unwrap_or(id), parse_arguments(arguments));
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        self.push(block);
        self.called += 1;
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_blocks_of_their_own_around_thoughts() {
        let thought = |letters: usize| PlacedThought {
            block: json!({"type": "thinking", "thinking": "hm"}),
            letters,
            calls: 0,
            starts: Vec::new(),
        };
        let mut turn = AssistantTurn::new(["Ich höre.", " ", "Both."].into_iter(), &[], Vec::new());
        for letters in [3, 9, 12] {
            turn.think(thought(letters));
        }
        let blocks = turn.into_blocks();
        let told: Vec<&str> = blocks.iter().map(|block| block["text"].as_str().unwrap_or("-")).collect();
        assert_eq!(told, ["Ich", "-", " höre.", "-", "Bo", "-", "th."]);
    }
}
