//! What a provider says of an answer in members that not every API has. Callers of the same API are told them as they are.

use serde_json::{Map, Number, Value};

/// An API that providers and callers may have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerApi {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

/// The members of an answer that only their own API knows, by where they stand. What the gateway itself says is none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderMembers {
    /// The API that they are of.
    pub api: AnswerApi,
    /// Of the whole answer.
    pub answer: Map<String, Value>,
    /// Of the choice; of messages, what stands beside the reason for its end.
    pub choice: Map<String, Value>,
    /// Of the choice's message.
    pub message: Map<String, Value>,
    /// Of what was counted.
    pub usage: Map<String, Value>,
}

/// The members of a chat completion's message that callers are told where its provider has them, and send back with it.
pub const MESSAGE_MEMBERS: [&str; 5] =
    ["audio", "citations", "executed_tools", "images", "provider_specific_fields"];

impl ProviderMembers {
    /// None yet.
    pub fn new(api: AnswerApi) -> ProviderMembers {
        let none = Map::new;
        ProviderMembers { api, answer: none(), choice: none(), message: none(), usage: none() }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        [&self.answer, &self.choice, &self.message, &self.usage].iter().all(|members| members.is_empty())
    }

    /// Takes on those of a later call for the same answer: its counts are added, all else of it replaces what was there.
    pub fn absorb(&mut self, later: ProviderMembers) {
        self.api = later.api;
        self.answer.extend(later.answer);
        self.choice.extend(later.choice);
        self.message.extend(later.message);
        // What a second call has read again is not told: callers are told of their prompt once.
        let of_answer = later.usage.into_iter().filter(|(name, _)| !is_of_prompt(name)).collect();
        add_counts(&mut self.usage, of_answer);
    }
}

/// True for the name of what was counted of the prompt.
fn is_of_prompt(name: &str) -> bool {
    ["prompt", "input", "cache"].iter().any(|word| name.starts_with(word))
}

/// Adds counts to others by their names. What is no count is replaced.
pub fn add_counts(counts: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match counts.get_mut(&name) {
            Some(count) => add_count(count, value),
            None => drop(counts.insert(name, value)),
        }
    }
}

fn add_count(count: &mut Value, more: Value) {
    match (&mut *count, more) {
        (Value::Object(counts), Value::Object(more)) => add_counts(counts, more),
        (Value::Number(one), Value::Number(other)) => *one = sum(one, &other),
        // That one call has no such count says nothing of the others.
        (_, Value::Null) => {}
        (_, more) => *count = more,
    }
}

fn sum(one: &Number, other: &Number) -> Number {
    if let (Some(one), Some(other)) = (one.as_u64(), other.as_u64()) {
        return one.saturating_add(other).into();
    }
    let both = one.as_f64().unwrap_or_default() + other.as_f64().unwrap_or_default();
    Number::from_f64(both).unwrap_or_else(|| other.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(answer: Value, usage: Value) -> ProviderMembers {
        let map = |value: Value| value.as_object().cloned().unwrap();
        ProviderMembers { answer: map(answer), usage: map(usage), ..ProviderMembers::new(AnswerApi::Chat) }
    }

    #[test]
    fn the_counts_of_several_calls_are_added_and_the_rest_is_the_last_ones() {
        let one = json!({ "cost": 0.25, "prompt_tokens_details": { "audio_tokens": 9 }, "details": { "audio_tokens": 3, "kind": "a" }, "calls": 1 });
        let mut all = members(json!({ "service_tier": "flex", "provider": "a" }), one);
        let other = json!({ "cost": 0.5, "prompt_tokens_details": { "audio_tokens": 9 }, "details": { "audio_tokens": 4, "kind": "b" }, "calls": null });
        all.absorb(members(json!({ "service_tier": "default" }), other));
        let usage = json!({ "cost": 0.75, "prompt_tokens_details": { "audio_tokens": 9 }, "details": { "audio_tokens": 7, "kind": "b" }, "calls": 1 });
        assert_eq!(all, members(json!({ "service_tier": "default", "provider": "a" }), usage));
    }
}
