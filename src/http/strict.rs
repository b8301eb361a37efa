//! Reads JSON strictly: a duplicate key is an error, and so is a body of more values than anything that is asked has. A value takes
//! ten times the memory of its text where that is short.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::{ApiError, codes};

/// The most values of a body, each member and each item of a list counting one. A conversation of thousands of turns has far fewer.
pub(super) const VALUES_MAX: usize = 1 << 18;

/// Reads a JSON object of so many values at most.
///
/// # Errors
/// 400 where the text is not JSON, has a key twice or too many values, is nested deeper than 128 levels, or is no object.
pub(super) fn object(body: &[u8], values_max: usize) -> Result<Map<String, Value>, ApiError> {
    let left = Cell::new(values_max.saturating_add(1));
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = StrictVisitor { left: &left }.deserialize(&mut reader);
    let read = read.and_then(|value| reader.end().map(|()| value));
    let value = read.map_err(|error| match left.get() {
        0 => too_many_values(values_max),
        _ => ApiError::invalid(None, format!("the body is not valid JSON: {error}")),
    })?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid(None, "the body must be a JSON object")),
    }
}

/// How many values an object has in it.
pub(super) fn values(members: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(members) => values(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    members.values().map(of).sum()
}

fn too_many_values(most: usize) -> ApiError {
    let message = format!("the body has more than {most} values; send less in one request");
    ApiError::invalid(None, message).with_code(codes::TOO_MANY_VALUES)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, message: &str) {
        let problem = object(body.as_bytes(), VALUES_MAX).unwrap_err();
        assert!(problem.message().contains(message), "{}", problem.message());
    }

    /// IN-06: depth, numbers, halves of characters and words that JSON has not.
    #[test]
    fn what_is_not_one_plain_object_is_refused_with_the_reason() {
        check("", "EOF");
        check("[1]", "must be a JSON object");
        check(r#"{"a":1,"b":{"c":1,"c":2}}"#, "\"c\" is there twice");
        check(r#"{"a":1e400}"#, "number out of range");
        check("{} x", "trailing characters");
        check(r#"{"a":"\ud800"}"#, "end of hex escape");
        check(r#"{"a":NaN}"#, "expected value");
        check(&format!("{{\"a\":{}", "[".repeat(200_000)), "recursion limit");
    }

    #[test]
    fn a_body_has_so_many_values_and_no_more() {
        // The object, the list, and what is in it.
        let body = |items: usize| format!("{{\"a\":[{}]}}", vec!["1"; items].join(","));
        assert!(object(body(8).as_bytes(), 10).is_ok());
        let problem = object(body(9).as_bytes(), 10).unwrap_err().to_json();
        assert_eq!(problem["error"]["code"], "too_many_values");
        assert!(problem["error"]["message"].as_str().unwrap().contains("more than 10 values"));
        assert_eq!(object(b"{\"a\":[1,}", 10).unwrap_err().to_json()["error"]["code"], Value::Null);
    }

    #[test]
    fn numbers_keep_their_kind() {
        let map = object(br#"{"a":18446744073709551615,"b":-1,"c":0.5}"#, VALUES_MAX).unwrap();
        assert_eq!(map["a"].as_u64(), Some(u64::MAX));
        assert_eq!(map["b"].as_i64(), Some(-1));
        assert_eq!(map["c"].as_f64(), Some(0.5));
    }
}
