//! Reads JSON strictly: a member that is there twice is an error, and so are more values than anything that is sent has. What reads
//! the first of two members and what reads the last would otherwise disagree. A value takes ten times the memory of its text where that
//! is short.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::de::Read;
use serde_json::{Map, Number, Value};

/// The most values of a text, each member and each item of a list counting one. A conversation of thousands of turns has far fewer.
pub const VALUES_MAX: usize = 1 << 18;

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum StrictJsonError {
    /// There are more values in it than may be.
    #[error("has more than {0} values; send less in one request")]
    TooManyValues(usize),
    /// There is no room for what is made of it.
    #[error("finds no room")]
    NoRoom,
    /// It is not JSON, has a member twice, or is nested deeper than 128 levels.
    #[error("is not valid JSON: {0}")]
    Invalid(#[from] serde_json::Error),
}

/// How many values a text has at most that is JSON, without reading them: a text inside of a text is counted before anything is
/// made of it.
pub fn values_at_most(text: &str) -> usize {
    let (mut values, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        if is_in_string {
            is_in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else {
            is_in_string = byte == b'"';
            values += usize::from(matches!(byte, b',' | b'[' | b'{'));
        }
    }
    values
}

/// What so many values may take that are read in another way than here.
pub fn values_room(values: usize) -> usize {
    values.saturating_mul(ITEM_BYTES + MEMBER_BYTES)
}

/// Reads a JSON text of so many values at most.
///
/// # Errors
/// Where the text is not JSON, has a member twice or too many values, or is nested deeper than 128 levels.
pub fn read(text: &[u8], values_max: usize) -> Result<Value, StrictJsonError> {
    read_within(text, values_max, &|_| true)
}

/// The same, where `take` takes room for so many bytes of what is made of the text, before they are used, or says that there is none.
///
/// # Errors
/// As [`read`], and where there is no room.
pub fn read_within(
    text: &[u8],
    values_max: usize,
    take: &dyn Fn(usize) -> bool,
) -> Result<Value, StrictJsonError> {
    let room = TreeRoom { take, due: Cell::new(0), is_full: Cell::new(false) };
    let left = Cell::new(values_max.saturating_add(1));
    let visitor = StrictVisitor { left: &left, room: &room };
    let read = match std::str::from_utf8(text) {
        // None of its strings is checked again.
        Ok(text) => read_whole(serde_json::Deserializer::from_str(text), visitor),
        Err(_) => read_whole(serde_json::Deserializer::from_slice(text), visitor),
    };
    room.take_due();
    match read {
        _ if room.is_full.get() => Err(StrictJsonError::NoRoom),
        Err(_) if left.get() == 0 => Err(StrictJsonError::TooManyValues(values_max)),
        read => read.map_err(StrictJsonError::Invalid),
    }
}

fn read_whole<'t>(
    mut reader: serde_json::Deserializer<impl Read<'t>>,
    visitor: StrictVisitor<'_>,
) -> Result<Value, serde_json::Error> {
    let value = visitor.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// What a value takes that stands in a list, beside its text;
const ITEM_BYTES: usize = 80;
/// and how much more one takes that is a member of an object, with its name;
const MEMBER_BYTES: usize = 96;
/// and an object that has members.
const OBJECT_BYTES: usize = 96;
/// Room is taken for so many bytes at once.
const TAKEN_AT_ONCE: usize = 64 << 10;

/// Takes room for what is made of a text.
struct TreeRoom<'c> {
    take: &'c dyn Fn(usize) -> bool,
    /// What is used and not taken yet.
    due: Cell<usize>,
    is_full: Cell<bool>,
}

impl TreeRoom<'_> {
    fn use_more<E: Error>(&self, bytes: usize) -> Result<(), E> {
        self.due.set(self.due.get() + bytes);
        if self.due.get() >= TAKEN_AT_ONCE {
            self.take_due();
        }
        if self.is_full.get() { Err(E::custom("no room")) } else { Ok(()) }
    }

    fn take_due(&self) {
        let is_full = self.is_full.get() || !(self.take)(self.due.take());
        self.is_full.set(is_full);
    }
}

/// Reads a value and those in it, as long as there may be more.
#[derive(Clone, Copy)]
struct StrictVisitor<'c> {
    left: &'c Cell<usize>,
    room: &'c TreeRoom<'c>,
}

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            return Err(D::Error::custom("too many values"));
        }
        self.room.use_more(ITEM_BYTES)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.room.use_more(if members.is_empty() {
                OBJECT_BYTES + MEMBER_BYTES
            } else {
                MEMBER_BYTES
            })?;
            members.push((key, entries.next_value_seed(self)?));
        }
        // A map that grows has room for four members at least: most are smaller.
        let mut map = Map::with_capacity(members.len());
        for (key, value) in members {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice; send it once")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    #[test]
    fn values_are_counted_without_reading_them() {
        let check = |text: &str, expected| assert_eq!(values_at_most(text), expected, "{text}");
        check("7", 1);
        check("[1, 2, [3]]", 5);
        check(r#"{"a": "b, [c]", "d\"e,": "f\\", "g": {"h": 1}}"#, 5);
        check(r#""\\",1"#, 2);
        check(&format!("[{}1]", "1,".repeat(999)), 1_001);
    }

    proptest! {
        /// Also where the text ends early or goes wrong: what was read until then was counted.
        #[test]
        fn no_text_has_more_values_than_are_counted(text in r#"[\[\]{},:"\\a1 ]{0,40}"#, cut in 0..40_usize) {
            let list = format!("[{text}]");
            for text in [text.as_str(), &list, &list[..cut.min(list.len())]] {
                if let Ok(value) = serde_json::from_str::<Value>(text) {
                    prop_assert!(count(&value) <= values_at_most(text), "{}", text);
                }
            }
        }
    }

    #[test]
    fn room_is_taken_while_a_text_is_read_and_where_there_is_none_it_is_not_read_on() {
        let text = format!("[{}]", vec![r#"{"a":1}"#; 10_000].join(","));
        let taken = Cell::new(0);
        let within = |most: usize| {
            taken.set(0);
            read_within(text.as_bytes(), VALUES_MAX, &|bytes| {
                taken.set(taken.get() + bytes);
                taken.get() <= most
            })
        };
        assert_eq!(within(usize::MAX).unwrap().as_array().map(Vec::len), Some(10_000));
        // A value and a member's value, an object and a name each.
        let each = 2 * ITEM_BYTES + MEMBER_BYTES + OBJECT_BYTES;
        assert_eq!(taken.get(), ITEM_BYTES + 10_000 * each);
        assert!(matches!(within(1 << 20), Err(StrictJsonError::NoRoom)));
        assert!(taken.get() <= (1 << 20) + TAKEN_AT_ONCE + each, "{}", taken.get());
        assert!(matches!(read(text.as_bytes(), 100), Err(StrictJsonError::TooManyValues(100))));
    }
}
