//! Turns of blocks, and instructions between them.

use serde_json::{Value, json};

/// Turns of blocks; neighbours of one role are one turn. Instructions stand behind the user's turn that they came with: the
/// provider takes them nowhere else.
#[derive(Debug, Default)]
pub(super) struct AnthropicTurns {
    turns: Vec<AnthropicTurn>,
    /// What comes behind the user's turn that is open.
    instructions: Vec<Value>,
}

#[derive(Debug)]
enum AnthropicTurn {
    Blocks(&'static str, Vec<Value>),
    Instruction(Value),
}

impl AnthropicTurns {
    /// Adds to the turn of that role.
    pub(super) fn push(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        if role != "user" {
            self.close();
        }
        match self.turns.last_mut() {
            Some(AnthropicTurn::Blocks(last, all)) if *last == role => all.extend(blocks),
            _ => self.turns.push(AnthropicTurn::Blocks(role, blocks)),
        }
    }

    /// Adds an instruction of these blocks.
    pub(super) fn instruct(&mut self, blocks: &[Value]) {
        if !blocks.is_empty() {
            self.add_instruction(json!({"role": "system", "content": blocks}));
        }
    }

    /// Adds an instruction as it is to be sent.
    pub(super) fn add_instruction(&mut self, message: Value) {
        self.instructions.push(message);
    }

    /// Says how deep to think from here on. That may stand between any two turns.
    pub(super) fn set_effort(&mut self, word: &str) {
        let message = json!({"role": "system", "content": [], "output_config": {"effort": word}});
        match self.turns.last() {
            Some(AnthropicTurn::Blocks("user", _)) => self.instructions.push(message),
            _ => self.turns.push(AnthropicTurn::Instruction(message)),
        }
    }

    /// Whose turn the last one is.
    pub(super) fn last(&self) -> Option<&'static str> {
        self.turns.iter().rev().find_map(|turn| match turn {
            AnthropicTurn::Blocks(role, _) => Some(*role),
            AnthropicTurn::Instruction(_) => None,
        })
    }

    fn close(&mut self) {
        // Without a user's turn before them they have no place yet.
        if matches!(self.turns.last(), Some(AnthropicTurn::Blocks("user", _))) {
            self.turns.extend(self.instructions.drain(..).map(AnthropicTurn::Instruction));
        }
    }

    /// Results of tools stand before anything else that the user says.
    pub(super) fn into_json(mut self) -> Value {
        self.close();
        let turns = self.turns.into_iter().map(|turn| match turn {
            AnthropicTurn::Instruction(message) => message,
            AnthropicTurn::Blocks(role, mut blocks) => {
                blocks.sort_by_key(|block| role == "user" && block["type"] != "tool_result");
                json!({"role": role, "content": blocks})
            }
        });
        turns.collect()
    }
}
