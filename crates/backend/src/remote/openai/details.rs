//! `reasoning_details`: the parts of a thought that a provider behind `OpenRouter` wants back as they were.

use serde_json::Value;

use stint_types::chat::{SignedThought, ThoughtSigner};

/// The members whose text comes in pieces.
const PIECEWISE: [&str; 2] = ["text", "summary"];

/// The most bytes of them that are kept.
const KEPT_MAX: usize = 4 << 20;

/// The parts so far. Text comes in pieces, all else whole.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    parts: Vec<Value>,
    bytes: usize,
}

impl ReasoningDetails {
    /// Takes what a chunk has.
    pub(super) fn push(&mut self, details: Value) {
        let Value::Array(details) = details else { return };
        for detail in details {
            let added = match self.parts.last_mut() {
                Some(last) if continues(last, &detail) => join(last, detail),
                _ => self.begin(detail),
            };
            self.bytes = self.bytes.saturating_add(added);
            if self.bytes > KEPT_MAX {
                // A part of them is of no use to the provider that wants them back.
                return self.parts.clear();
            }
        }
    }

    fn begin(&mut self, detail: Value) -> usize {
        let bytes = detail.to_string().len();
        self.parts.push(detail);
        bytes
    }

    /// All parts, now that no more comes.
    pub(super) fn signed(&mut self, signer: &ThoughtSigner) -> impl Iterator<Item = SignedThought> {
        let signed = |part: Value| SignedThought { signer: signer.clone(), block: part.to_string().into() };
        std::mem::take(&mut self.parts).into_iter().map(signed)
    }
}

/// True for a further piece of the same text.
fn continues(last: &Value, next: &Value) -> bool {
    let same = |member: &str| last.get(member) == next.get(member);
    same("type")
        && same("index")
        && PIECEWISE.iter().any(|member| last.get(*member).is_some_and(Value::is_string))
}

/// Adds a further piece of a text, and tells how many bytes more are kept.
fn join(last: &mut Value, next: Value) -> usize {
    let (Value::Object(last), Value::Object(next)) = (last, next) else { return 0 };
    let mut added = 0;
    for (name, value) in next.into_iter().filter(|(_, value)| !value.is_null()) {
        if PIECEWISE.contains(&name.as_str())
            && let (Some(Value::String(text)), Some(more)) = (last.get_mut(&name), value.as_str())
        {
            text.push_str(more);
            added += more.len();
        } else if last.get(&name) != Some(&value) {
            let (named, bytes) = (name.len(), value.to_string().len());
            let before = last.insert(name, value);
            added += before.map_or(named + bytes, |before| bytes.saturating_sub(before.to_string().len()));
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remote::golden;

    fn push(details: &mut ReasoningDetails, text: &str) {
        let piece =
            json!({"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0});
        details.push(json!([piece]));
    }

    #[test]
    fn a_long_thought_in_small_pieces_is_kept_whole() {
        let mut details = ReasoningDetails::default();
        (0..60_000).for_each(|_| push(&mut details, "word"));
        let signed: Vec<SignedThought> = details.signed(&golden::signer("m")).collect();
        assert_eq!((signed.len(), signed[0].block.matches("word").count()), (1, 60_000));
    }

    #[test]
    fn what_takes_the_place_of_something_as_long_takes_no_more_room() {
        let mut details = ReasoningDetails::default();
        for number in 0..60_000 {
            let (id, index) = (format!("{number:0100}"), 0);
            details.push(json!([{"type": "reasoning.text", "text": "word", "id": id, "index": index}]));
        }
        assert_eq!(details.signed(&golden::signer("m")).count(), 1);
    }

    #[test]
    fn of_a_thought_that_is_too_long_no_part_is_kept() {
        let mut details = ReasoningDetails::default();
        let text = "x".repeat(KEPT_MAX / 2);
        (0..3).for_each(|_| push(&mut details, &text));
        push(&mut details, "more");
        assert_eq!(details.signed(&golden::signer("m")).count(), 0);
    }
}
