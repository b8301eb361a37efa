//! What a request looks like, whichever models could serve it.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::catalog::prior::TRAITS;

/// How many of the surface features are kept with a request.
pub const TRAIT_COUNTS: usize = 12;
/// How many of a request's words are kept.
pub const TRAIT_WORDS_MAX: usize = 64;
/// How many places there are for words: each is that of several words.
pub const TRAIT_WORD_PLACES: u16 = 4096;

/// What a request looks like to what is learned: the same numbers whichever models could serve it. It is recorded with the
/// decision, so that a judgement which comes hours later is learned as one that comes at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestTraits {
    /// The traits, as far as the text shows them, in thousandths at the finest.
    pub traits: [f32; TRAITS],
    /// How far some of what is counted in it is from what is usual, in thousandths at the finest.
    pub counts: [f32; TRAIT_COUNTS],
    /// The places of its rarest known words, by their hashes, each once, in order; at most `TRAIT_WORDS_MAX`.
    #[serde(default)]
    pub words: Vec<u16>,
}

impl RequestTraits {
    /// Reads what was recorded; nothing is known of a request that another version recorded in another form.
    pub(super) fn of_any_version<'de, D: Deserializer<'de>>(from: D) -> Result<RequestTraits, D::Error> {
        Ok(RequestTraits::deserialize(Value::deserialize(from)?).unwrap_or_default())
    }

    /// Writes all but the places of words.
    pub(super) fn without_words<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let RequestTraits { traits, counts, words: _ } = self;
        let mut members = to.serialize_struct("RequestTraits", 2)?;
        members.serialize_field("traits", traits)?;
        members.serialize_field("counts", counts)?;
        members.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_record_of_another_version_nothing_is_known_of_what_its_request_looked_like() {
        let read = |value: Value| RequestTraits::of_any_version(value).unwrap();
        let old = json!({ "mean": 0.5, "best": 1.0, "worst": 0.0, "prompt": -1.25 });
        assert_eq!(read(old), RequestTraits::default());
        assert_eq!(read(Value::Null), RequestTraits::default());
        let mut traits = RequestTraits { words: vec![3, 70], ..RequestTraits::default() };
        assert_eq!(read(serde_json::to_value(&traits).unwrap()), traits);
        traits.words.clear();
        assert_eq!(read(serde_json::to_value(&traits).unwrap()), traits, "a line of the log has no words");
    }
}
