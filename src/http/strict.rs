//! Bodies as JSON objects, read strictly.

use serde_json::{Map, Value};

use stint_types::strict_json::{self, StrictJsonError};

use super::body_limiter::{self, ValueRoom};
use super::error::{ApiError, codes};

pub(super) use strict_json::VALUES_MAX;

/// Reads a JSON object of so many values at most.
///
/// # Errors
/// 400 where the text is not JSON, has a key twice or too many values, is nested deeper than 128 levels, or is no object.
pub(super) fn object(body: &[u8], values_max: usize) -> Result<Map<String, Value>, ApiError> {
    object_within(body, values_max, &ValueRoom::default())
}

/// The same, in room for what is made of it.
///
/// # Errors
/// As [`object`], and 503 where there is no room.
pub(super) fn object_within(
    body: &[u8],
    values_max: usize,
    room: &ValueRoom,
) -> Result<Map<String, Value>, ApiError> {
    let read = strict_json::read_within(body, values_max, &|bytes| room.take(bytes));
    match read.map_err(|error| unreadable(&error))? {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid(None, "the body must be a JSON object")),
    }
}

fn unreadable(error: &StrictJsonError) -> ApiError {
    let problem = ApiError::invalid(None, format!("the body {error}"));
    match error {
        StrictJsonError::TooManyValues(_) => problem.with_code(codes::TOO_MANY_VALUES),
        StrictJsonError::NoRoom => body_limiter::no_room(),
        StrictJsonError::Invalid(_) => problem,
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
