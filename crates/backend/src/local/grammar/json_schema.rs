//! A caller's JSON schema, bounded, and with what the grammar needs beside it.

use serde_json::{Value, json};

use super::number_bounds::narrow;
use super::one_of::as_any_of;
use super::subschemas::change_each;

/// What a schema may be as text.
const BYTES_MAX: usize = 128 * 1024;

/// How deep it may be nested. What reads it calls itself for each level.
const DEPTH_MAX: usize = 64;

/// Patterns of members' names that it may have. Each is held against each other one before anything else is done.
const NAME_PATTERNS_MAX: usize = 64;

/// The white space between two parts of JSON: none or a space. A small model that may write more of it fills its answer with it.
const BLANK: &str = " ";

/// The member by which a schema tells the grammar's maker how to read it. A caller's own is not heeded.
const OPTIONS: &str = "x-guidance";

/// A schema as the grammar's maker takes it. Where it need not be kept to the letter, words of schemas that no grammar can
/// express are passed over.
///
/// # Errors
/// Why it is none, or too large.
pub(super) fn schema_source(schema: &Value, is_lenient: bool) -> Result<Value, String> {
    let mut members = match schema {
        Value::Bool(true) => serde_json::Map::new(),
        Value::Object(members) => members.clone(),
        _ => return Err("the schema must be an object".into()),
    };
    if depth(schema) > DEPTH_MAX {
        return Err(format!("the schema is nested more than {DEPTH_MAX} levels deep: make it flatter"));
    }
    if schema.to_string().len() > BYTES_MAX {
        return Err(format!("the schema has more than {BYTES_MAX} bytes: make it smaller"));
    }
    if name_patterns(schema) > NAME_PATTERNS_MAX {
        let most = format!("the schema has more than {NAME_PATTERNS_MAX} patterns in patternProperties");
        return Err(format!("{most}: make it simpler"));
    }
    change_each(&mut members, &|schema| {
        as_any_of(schema);
        narrow(schema)
    })?;
    let options = json!({ "whitespace_pattern": BLANK, "lenient": is_lenient });
    members.insert(OPTIONS.to_owned(), options);
    Ok(Value::Object(members))
}

fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    walk(value, |_, level| deepest = deepest.max(level));
    deepest
}

fn name_patterns(value: &Value) -> usize {
    let mut count = 0;
    walk(value, |value, _| count += value["patternProperties"].as_object().map_or(0, serde_json::Map::len));
    count
}

/// Shows every value of a schema, and how deep it lies.
fn walk<'v>(value: &'v Value, mut see: impl FnMut(&'v Value, usize)) {
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        see(value, level);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }))
    }

    #[test]
    fn what_is_no_schema_or_too_large_a_one_is_refused() {
        assert!(schema_source(&json!("object"), false).unwrap_err().contains("must be an object"));
        assert!(schema_source(&nested(31), false).is_ok());
        assert!(schema_source(&nested(32), false).unwrap_err().contains("deep"));
        let long = json!({ "description": "x".repeat(BYTES_MAX) });
        assert!(schema_source(&long, false).unwrap_err().contains("bytes"));
        let patterns: serde_json::Map<_, _> =
            (0..=NAME_PATTERNS_MAX).map(|n| (format!("^a{n}$"), json!({}))).collect();
        let many = json!({ "items": { "patternProperties": patterns } });
        assert!(schema_source(&many, false).unwrap_err().contains("patternProperties"));
    }

    #[test]
    fn how_a_schema_is_read_is_not_for_its_writer_to_say() {
        let schema = json!({ "type": "object", "x-guidance": { "whitespace_pattern": ".*" } });
        let source = schema_source(&schema, false).unwrap();
        assert_eq!(source["x-guidance"]["whitespace_pattern"], BLANK);
    }
}
