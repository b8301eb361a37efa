//! Parses the arguments of a tool call, which are JSON text as a model wrote it.

use serde_json::Value;
use sha2::{Digest, Sha256};

use stint_types::units::Count;

/// How many elements a list among the arguments has; nothing if there is no such list, or an empty one.
pub(super) fn elements(arguments: &str, list: &str) -> Option<Count> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let length = arguments.get(list)?.as_array()?.len();
    (length > 0).then(|| Count(u64::try_from(length).unwrap_or(u64::MAX)))
}

/// The same arguments with only the first elements of that list.
pub(super) fn shortened(arguments: &str, list: &str, most: Count) -> Option<String> {
    let mut arguments: Value = serde_json::from_str(arguments).ok()?;
    let elements = arguments.get_mut(list)?.as_array_mut()?;
    elements.truncate(usize::try_from(most.0).unwrap_or(usize::MAX));
    Some(arguments.to_string())
}

/// The same arguments however they were written: members in order, no white space, whole numbers without a fraction. What is
/// no JSON stands for itself.
pub(super) fn canonical(arguments: &str) -> String {
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(value) => ordered(value).to_string(),
        Err(_) => trimmed.to_owned(),
    }
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> =
                members.into_iter().map(|(name, value)| (name, ordered(value))).collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(list) => list.into_iter().map(ordered).collect(),
        Value::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
        other => other,
    }
}

/// Hashes a value however it was written, without a copy of what may be an image. Kinds and lengths go in, so that nothing
/// can be taken for something else.
pub(super) fn hash(value: &Value, hasher: &mut Sha256) {
    let mut text = |kind: &str, text: &str| {
        hasher.update(kind);
        hasher.update(text.len().to_be_bytes());
        hasher.update(text);
    };
    match value {
        Value::Null => text("null", ""),
        Value::Bool(flag) => text("flag", if *flag { "true" } else { "false" }),
        Value::Number(number) => text("number", &whole(number).as_ref().unwrap_or(number).to_string()),
        Value::String(said) => text("text", said),
        Value::Array(list) => {
            text("list", &list.len().to_string());
            list.iter().for_each(|element| hash(element, hasher));
        }
        Value::Object(members) => {
            text("members", &members.len().to_string());
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, member) in members {
                hasher.update(name.len().to_be_bytes());
                hasher.update(name);
                hash(member, hasher);
            }
        }
    }
}

/// A float without a fraction as the whole number it is, which is how some languages write it again.
fn whole(number: &serde_json::Number) -> Option<serde_json::Number> {
    let float =
        number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15)?;
    format!("{float:.0}").parse::<i64>().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_same_however_they_are_written() {
        let one = canonical(r#"{"b": [1.0, 2.5], "a": {"y": null, "x": "é"}}"#);
        assert_eq!(one, canonical("{\"a\":{\"x\":\"\\u00e9\",\"y\":null},\n \"b\":[1,2.5]}"));
        assert_ne!(one, canonical(r#"{"b": [2.5, 1.0], "a": {"y": null, "x": "é"}}"#));
        assert_eq!(canonical(" "), canonical("{ }"));
        assert_eq!(canonical(" not json "), "not json");
    }

    #[test]
    fn only_a_list_that_is_there_is_counted() {
        let check = |arguments: &str, count: Option<u64>| {
            assert_eq!(elements(arguments, "queries"), count.map(Count), "{arguments}");
        };
        check(r#"{"queries": ["a", "b", "c"]}"#, Some(3));
        check(r#"{"queries": []}"#, None);
        check(r#"{"queries": "a"}"#, None);
        check(r#"{"query": ["a"]}"#, None);
        check(r#"{"queries": ["a""#, None);
        check("[]", None);
    }

    #[test]
    fn a_list_is_shortened_and_all_else_stays() {
        let short = shortened(r#"{"lang": "en", "queries": ["a", "b", "c"], "n": 5}"#, "queries", Count(2));
        assert_eq!(short.as_deref(), Some(r#"{"lang":"en","queries":["a","b"],"n":5}"#));
    }
}
