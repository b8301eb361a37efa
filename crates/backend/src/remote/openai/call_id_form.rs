//! Ids of tool calls for an upstream that takes only some. A conversation may have those of another provider.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::remote::call_ids::limited_id;

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
    /// Any of at most so many bytes.
    AtMost(usize),
}

impl CallIdForm {
    /// The ids that a model takes behind such an upstream: Kimi's models want their own back (`functions.f:0`), however long.
    pub(super) fn of_model(self, model: &str) -> CallIdForm {
        match self {
            CallIdForm::AtMost(_) if model.to_ascii_lowercase().contains("kimi") => CallIdForm::Any,
            form => form,
        }
    }

    /// Writes the ids of a turn as they are taken: a call and its result get the same one, in every request.
    pub(super) fn rewrite(self, turn: &mut Value) {
        if self == CallIdForm::Any {
            return;
        }
        self.rewrite_member("tool_call_id", turn);
        let calls = turn.get_mut("tool_calls").and_then(Value::as_array_mut);
        calls.into_iter().flatten().for_each(|call| self.rewrite_member("id", call));
    }

    fn rewrite_member(self, member: &str, object: &mut Value) {
        let Some(Value::String(id)) = object.get_mut(member) else { return };
        let taken = match self {
            CallIdForm::Any => return,
            CallIdForm::NineAlphanumerics => short_id(id),
            CallIdForm::AtMost(bytes) => limited_id(id, bytes),
        };
        *id = taken.into_owned();
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_and_its_result_get_the_same_id_where_theirs_is_too_long() {
        let long = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
        let mut call = json!({ "role": "assistant", "tool_calls": [{ "id": long }, { "id": "call_1" }] });
        let mut result = json!({ "role": "tool", "tool_call_id": long });
        let form = CallIdForm::AtMost(40);
        [&mut call, &mut result].into_iter().for_each(|turn| form.rewrite(turn));
        assert_eq!(call["tool_calls"][0]["id"], result["tool_call_id"]);
        assert!(result["tool_call_id"].as_str().is_some_and(|id| id.len() <= 40), "{result}");
        assert_eq!(call["tool_calls"][1]["id"], "call_1");
        assert_eq!((form.of_model("gpt-5.4"), form.of_model("Kimi-K2.5")), (form, CallIdForm::Any));
    }

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
