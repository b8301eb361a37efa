//! Converts the arguments of calls: backends know JSON arguments only, callers send and get plain texts and searches too.

use serde_json::{Value, json};

use stint_types::chat::CUSTOM_INPUT;

/// The plain text in the arguments of a call of a custom tool; what has another form is passed on as it is.
pub(super) fn unwrap_input(arguments: &str) -> String {
    let mut read = serde_json::from_str(arguments).unwrap_or(Value::Null);
    match read[CUSTOM_INPUT].take() {
        Value::String(input) => input,
        _ => arguments.to_owned(),
    }
}

/// What a search is to find; what has no form of its own is passed on as it is.
pub(super) fn search_arguments(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(read @ Value::Object(_)) => read,
        _ if arguments.trim().is_empty() => json!({}),
        _ => arguments.into(),
    }
}

/// The arguments of a call of a custom tool with that input.
pub(super) fn wrap_input(input: &str) -> String {
    json!({ CUSTOM_INPUT: input }).to_string()
}
