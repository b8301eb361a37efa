//! A signed thought together with its place in the model's turn: its provider accepts it only behind all that stood before
//! it, and a turn may have thoughts between its texts and its calls.

use serde_json::{Map, Value, json};

/// The member of a block, as callers carry it, that tells its place. The provider does not know it.
const PLACE: &str = "stint_place";

/// Of more calls it is not told where each stood: every thought would repeat them all.
const STARTS_MAX: usize = 256;

/// A signed thought and its place.
#[derive(Debug)]
pub(super) struct PlacedThought {
    /// The block as the provider sent it.
    pub(super) block: Value,
    /// How many characters of the turn's text stood before it.
    pub(super) letters: usize,
    /// How many of its calls stood before it.
    pub(super) calls: usize,
    /// How many characters of text stood before each of those calls, where text came behind one; else all of it came before.
    pub(super) starts: Vec<usize>,
}

impl PlacedThought {
    /// Reads one that came back; nothing if it is none.
    pub(super) fn read(block: &str) -> Option<PlacedThought> {
        let mut block: Map<String, Value> = serde_json::from_str(block).ok()?;
        if !matches!(block.get("type")?.as_str()?, "thinking" | "redacted_thinking") {
            return None;
        }
        let place = block.remove(PLACE).unwrap_or_default();
        let count = |at: usize| place.get(at).and_then(Value::as_u64).unwrap_or_default();
        let count = |at| usize::try_from(count(at)).unwrap_or(usize::MAX);
        let (letters, calls) = (count(0), count(1));
        let starts = place.get(2).and_then(|starts| serde_json::from_value(starts.clone()).ok());
        Some(PlacedThought {
            block: Value::Object(block),
            letters,
            calls,
            starts: starts.unwrap_or_default(),
        })
    }

    /// The block with its place, as callers carry it. Most stand at the beginning, and say nothing of it.
    /// `starts` has the characters of text before each call that stood before it.
    pub(super) fn write(mut block: Map<String, Value>, letters: usize, starts: &[usize]) -> Box<str> {
        let calls = starts.len();
        if calls <= STARTS_MAX && starts.iter().any(|start| *start < letters) {
            block.insert(PLACE.to_owned(), json!([letters, calls, starts]));
        } else if (letters, calls) != (0, 0) {
            block.insert(PLACE.to_owned(), json!([letters, calls]));
        }
        Value::Object(block).to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_behind_very_many_calls_does_not_repeat_the_place_of_each() {
        let place = |starts: &[usize]| -> Value {
            let block = PlacedThought::write(Map::new(), 9, starts);
            serde_json::from_str::<Value>(&block).unwrap()[PLACE].clone()
        };
        let starts: Vec<usize> = (0..=STARTS_MAX).collect();
        assert_eq!(place(&starts[..2]), json!([9, 2, [0, 1]]));
        assert_eq!(place(&starts), json!([9, STARTS_MAX + 1]));
    }
}
