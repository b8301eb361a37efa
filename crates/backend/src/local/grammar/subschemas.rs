//! The schemas in a schema.

use serde_json::{Map, Value};

/// Members whose values are schemas, lists of schemas, or schemas by name. What else looks like a schema is data.
const SCHEMAS: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Changes a schema and every one in it. Their depth is bounded by who calls it.
///
/// # Errors
/// The first that a change has.
pub(super) fn change_each(
    schema: &mut Map<String, Value>,
    change: &impl Fn(&mut Map<String, Value>) -> Result<(), String>,
) -> Result<(), String> {
    change(schema)?;
    for (name, value) in schema {
        let inner: Vec<&mut Value> = match value {
            Value::Object(named) if NAMED.contains(&&**name) => named.values_mut().collect(),
            Value::Array(list) if LISTS.contains(&&**name) || name == "items" => list.iter_mut().collect(),
            value if SCHEMAS.contains(&&**name) => vec![value],
            _ => continue,
        };
        for schema in inner {
            if let Value::Object(members) = schema {
                change_each(members, change)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(mut schema: Value, expected: &Value) {
        let change = |members: &mut Map<String, Value>| {
            if members.remove("old").is_some() {
                members.insert("new".into(), json!(1));
            }
            Ok(())
        };
        change_each(schema.as_object_mut().unwrap(), &change).unwrap();
        assert_eq!(schema, *expected);
    }

    #[test]
    fn schemas_are_found_wherever_they_stand_and_data_is_let_be() {
        let (old, new) = (json!({ "old": 1 }), json!({ "new": 1 }));
        for make in [
            |it: &Value| it.clone(),
            |it: &Value| json!({ "properties": { "const": it, "old": it } }),
            |it: &Value| json!({ "items": it }),
            |it: &Value| json!({ "items": [it, true] }),
            |it: &Value| json!({ "anyOf": [{ "type": "null" }, it] }),
            |it: &Value| json!({ "$defs": { "a": { "additionalProperties": it } } }),
        ] {
            check(make(&old), &make(&new));
        }
        for data in [json!({ "const": old }), json!({ "enum": [old] }), json!({ "default": old })] {
            check(data.clone(), &data);
        }
    }
}
