//! `oneOf` whose cases are told apart by their constants: the grammar's maker does not see that, and takes `anyOf`.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Makes `anyOf` of a schema's `oneOf`, where no value can fit two of its cases.
pub(super) fn as_any_of(schema: &mut Map<String, Value>) {
    let is_apart = schema.get("oneOf").and_then(Value::as_array).is_some_and(|cases| are_apart(cases));
    if is_apart
        && !schema.contains_key("anyOf")
        && let Some(cases) = schema.remove("oneOf")
    {
        schema.insert("anyOf".into(), cases);
    }
}

fn are_apart(cases: &[Value]) -> bool {
    let mut seen = HashSet::new();
    cases.iter().all(|case| {
        let one = case.get("const").map(std::slice::from_ref);
        let values = one.or_else(|| case.get("enum").and_then(Value::as_array).map(Vec::as_slice));
        let own: Option<HashSet<String>> = values.map(|values| values.iter().map(key).collect());
        own.is_some_and(|own| own.into_iter().all(|value| seen.insert(value)))
    })
}

/// The same for values that are equal: 1 and 1.0 are.
fn key(value: &Value) -> String {
    match value.as_f64() {
        Some(number) => number.to_string(),
        // As JSON a string has quotes, so that none looks like a number.
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(cases: &Value, is_apart: bool) {
        let mut schema = json!({ "oneOf": cases });
        as_any_of(schema.as_object_mut().unwrap());
        assert_eq!(schema, if is_apart { json!({ "anyOf": cases }) } else { json!({ "oneOf": cases }) });
    }

    #[test]
    fn cases_of_different_constants_are_any_of_them() {
        check(&json!([{ "const": 1, "title": "one" }, { "const": "1" }, { "enum": [2, null, 2] }]), true);
        check(&json!([{ "const": 1 }, { "const": 1.0 }]), false);
        check(&json!([{ "enum": [1, 2] }, { "enum": [2, 3] }]), false);
        check(&json!([{ "const": 1 }, { "type": "string" }]), false);
    }
}
