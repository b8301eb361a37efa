//! Reads JSON strictly: a duplicate key is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::ApiError;

/// Reads a JSON object.
///
/// # Errors
/// 400 where the text is not JSON, has a key twice, is nested deeper than 128 levels, or is no object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let StrictValue(value) = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(None, format!("the body is not valid JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid(None, "the body must be a JSON object")),
    }
}

struct StrictValue(Value);

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StrictValue, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(StrictValue)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
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
        while let Some(StrictValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, StrictValue(value))) = entries.next_entry::<String, StrictValue>()? {
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
        let problem = object(body.as_bytes()).unwrap_err();
        assert!(problem.message().contains(message), "{}", problem.message());
    }

    #[test]
    fn what_is_not_one_plain_object_is_refused_with_the_reason() {
        check("", "EOF");
        check("[1]", "must be a JSON object");
        check(r#"{"a":1,"b":{"c":1,"c":2}}"#, "\"c\" is there twice");
        check(r#"{"a":1e400}"#, "number out of range");
        check("{} x", "trailing characters");
        check(&format!("{{\"a\":{}", "[".repeat(200_000)), "recursion limit");
    }

    #[test]
    fn numbers_keep_their_kind() {
        let map = object(br#"{"a":18446744073709551615,"b":-1,"c":0.5}"#).unwrap();
        assert_eq!(map["a"].as_u64(), Some(u64::MAX));
        assert_eq!(map["b"].as_i64(), Some(-1));
        assert_eq!(map["c"].as_f64(), Some(0.5));
    }
}
