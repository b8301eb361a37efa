//! Ids of tool calls for an upstream that takes only some. A conversation may have those of another provider.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// How long an id is for Mistral, in letters and digits.
const LENGTH: usize = 9;

/// The letters and digits of an id.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The ids that an upstream takes for tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallIdForm {
    /// Any.
    #[default]
    Any,
    /// Nine letters and digits ("must be a-z, A-Z, 0-9, with a length of 9"); Mistral.
    NineAlphanumerics,
}

impl CallIdForm {
    /// Writes the ids of a turn as they are taken: a call and its result get the same one, in every request.
    pub(super) fn rewrite(self, turn: &mut Value) {
        if self == CallIdForm::Any {
            return;
        }
        shorten("tool_call_id", turn);
        let calls = turn.get_mut("tool_calls").and_then(Value::as_array_mut);
        calls.into_iter().flatten().for_each(|call| shorten("id", call));
    }
}

fn shorten(member: &str, object: &mut Value) {
    if let Some(Value::String(id)) = object.get_mut(member) {
        *id = short_id(id).into_owned();
    }
}

/// The id itself where it fits, or else one made of its hash.
fn short_id(id: &str) -> Cow<'_, str> {
    if id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.into();
    }
    let hash = Sha256::digest(id);
    hash.iter().take(LENGTH).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_does_not_fit_becomes_one_that_does_and_always_the_same() {
        let fits = |id: &str| id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert_eq!(short_id("D681PevKs"), "D681PevKs");
        for id in ["", "toolu_01A09q90qw90lq917835lq9", "call_1234", "functions.f:0", "ähnlichä"] {
            assert!(fits(&short_id(id)), "{id}");
            assert_eq!(short_id(&short_id(id)), short_id(id));
        }
        assert_ne!(short_id("functions.f:0"), short_id("functions.f:1"));
    }
}
