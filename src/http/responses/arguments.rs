//! Converts the arguments of calls: backends know JSON arguments only, callers send and get plain texts and searches too.

use serde_json::{Value, json};

use stint_types::chat::CUSTOM_INPUT;

/// The plain text in the arguments of a call of a custom tool; what has another form is passed on as it is.
pub(super) fn unwrap_input(arguments: &str) -> String {
    let mut read = serde_json::from_str(arguments).unwrap_or(Value::Null);
    match read.get_mut(CUSTOM_INPUT).map(Value::take) {
        Some(Value::String(input)) => input,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_with_the_input_is_passed_on_as_it_is() {
        assert_eq!(unwrap_input(&wrap_input("ls -la")), "ls -la");
        for arguments in [r#""ls -la""#, "[1]", "42", "true", "null", "{}", r#"{"input":7}"#, "ls -la", ""] {
            assert_eq!(unwrap_input(arguments), arguments);
        }
    }
}
