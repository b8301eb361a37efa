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
            self.bytes = self.bytes.saturating_add(detail.to_string().len());
            if self.bytes > KEPT_MAX {
                // A part of them is of no use to the provider that wants them back.
                return self.parts.clear();
            }
            match self.parts.last_mut() {
                Some(last) if continues(last, &detail) => join(last, detail),
                _ => self.parts.push(detail),
            }
        }
    }

    /// All parts, now that no more comes.
    pub(super) fn signed(&mut self, maker: &ThoughtSigner) -> impl Iterator<Item = SignedThought> {
        let signed = |part: Value| SignedThought { signer: maker.clone(), block: part.to_string().into() };
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

fn join(last: &mut Value, next: Value) {
    let Value::Object(next) = next else { return };
    for (name, value) in next {
        if value.is_null() {
            continue;
        }
        let before = last.get(&name).and_then(Value::as_str).filter(|_| PIECEWISE.contains(&name.as_str()));
        last[name.as_str()] = match (before, value.as_str()) {
            (Some(before), Some(more)) => [before, more].concat().into(),
            _ => value,
        };
    }
}
