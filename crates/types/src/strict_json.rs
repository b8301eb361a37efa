//! Reads JSON strictly: a member that is there twice is an error, and so are more values than anything that is sent has. What reads
//! the first of two members and what reads the last would otherwise disagree. A value takes ten times the memory of its text where that
//! is short.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most values of a text, each member and each item of a list counting one. A conversation of thousands of turns has far fewer.
pub const VALUES_MAX: usize = 1 << 18;

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum StrictJsonError {
    /// There are more values in it than may be.
    #[error("has more than {0} values; send less in one request")]
    TooManyValues(usize),
    /// It is not JSON, has a member twice, or is nested deeper than 128 levels.
    #[error("is not valid JSON: {0}")]
    Invalid(#[from] serde_json::Error),
}

/// Reads a JSON text of so many values at most.
///
/// # Errors
/// Where the text is not JSON, has a member twice or too many values, or is nested deeper than 128 levels.
pub fn read(text: &[u8], values_max: usize) -> Result<Value, StrictJsonError> {
    let left = Cell::new(values_max.saturating_add(1));
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = StrictVisitor { left: &left }.deserialize(&mut reader);
    let read = read.and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| match left.get() {
        0 => StrictJsonError::TooManyValues(values_max),
        _ => StrictJsonError::Invalid(error),
    })
}

/// Reads a value and those in it, as long as there may be more.
#[derive(Clone, Copy)]
struct StrictVisitor<'c> {
    left: &'c Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            return Err(D::Error::custom("too many values"));
        }
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
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice; send it once")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
