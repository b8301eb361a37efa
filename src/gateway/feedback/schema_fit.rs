//! Checks whether a value has the structure that a JSON schema asks for.
//!
//! Only the structure counts: types, required and unknown members, items, constants, choices, bounds, and references within
//! the schema. What needs a regular expression, a date or another file (`pattern`, `format`, a remote `$ref`) is not
//! checked and counts as fitting. Callers write the schemas, so the check ends after a fixed number of steps.

use serde_json::{Map, Value};

/// How many schemas are looked at for one value, and how deep.
const STEPS_MAX: u32 = 20_000;
const DEPTH_MAX: u32 = 64;

/// Whether the value fits, as far as one looks.
pub(super) fn fits(value: &Value, schema: &Value) -> bool {
    SchemaCheck { root: schema, steps: STEPS_MAX }.check(value, schema, 0)
}

struct SchemaCheck<'s> {
    root: &'s Value,
    steps: u32,
}

impl SchemaCheck<'_> {
    fn check(&mut self, value: &Value, schema: &Value, depth: u32) -> bool {
        let Some(left) = self.steps.checked_sub(1).filter(|_| depth < DEPTH_MAX) else { return true };
        self.steps = left;
        let Value::Object(schema) = schema else { return *schema != Value::Bool(false) };
        let below = depth + 1;
        self.is_right_kind(value, schema)
            && within_bounds(value, schema)
            && self.members_fit(value, schema, below)
            && self.items_fit(value, schema, below)
            && self.combinations_fit(value, schema, below)
    }

    fn is_right_kind(&self, value: &Value, schema: &Map<String, Value>) -> bool {
        let is_kind = match schema.get("type") {
            Some(Value::String(kind)) => is_of(value, kind),
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind))
            }
            _ => true,
        };
        let is_known = schema.get("enum").and_then(Value::as_array);
        is_kind
            && is_known.is_none_or(|known| known.iter().any(|known| equal(known, value)))
            && schema.get("const").is_none_or(|only| equal(only, value))
    }

    fn members_fit(&mut self, value: &Value, schema: &Map<String, Value>, depth: u32) -> bool {
        let Value::Object(members) = value else { return true };
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        if !required.filter_map(Value::as_str).all(|name| members.contains_key(name)) {
            return false;
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
        members.iter().all(|(name, member)| {
            let schema = known.and_then(|known| known.get(name)).or(others);
            schema.is_none_or(|schema| self.check(member, schema, depth))
        })
    }

    fn items_fit(&mut self, value: &Value, schema: &Map<String, Value>, depth: u32) -> bool {
        let Value::Array(items) = value else { return true };
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items");
        items.iter().enumerate().all(|(place, item)| {
            let schema = first.get(place).or(rest);
            schema.is_none_or(|schema| self.check(item, schema, depth))
        })
    }

    fn combinations_fit(&mut self, value: &Value, schema: &Map<String, Value>, depth: u32) -> bool {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        if let Some(target) =
            schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'))
        {
            let root = self.root;
            if let Some(target) = root.pointer(target)
                && !self.check(value, target, depth)
            {
                return false;
            }
        }
        let all = list("allOf").is_none_or(|all| all.iter().all(|each| self.check(value, each, depth)));
        let any = list("anyOf").is_none_or(|any| any.iter().any(|each| self.check(value, each, depth)));
        let one = list("oneOf").is_none_or(|one| one.iter().any(|each| self.check(value, each, depth)));
        all && any && one
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract().abs() <= 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Numbers are equal by what they stand for: 1 is 1.0.
fn equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => (left - right).abs() <= 0.0,
        _ => left == right,
    }
}

fn within_bounds(value: &Value, schema: &Map<String, Value>) -> bool {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let within = |size: f64, least: &str, most: &str| {
        bound(least).is_none_or(|least| size >= least) && bound(most).is_none_or(|most| size <= most)
    };
    let count = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            within(number, "minimum", "maximum")
                && bound("exclusiveMinimum").is_none_or(|least| number > least)
                && bound("exclusiveMaximum").is_none_or(|most| number < most)
        }
        Value::String(text) => within(count(text.chars().count()), "minLength", "maxLength"),
        Value::Array(items) => within(count(items.len()), "minItems", "maxItems"),
        Value::Object(members) => within(count(members.len()), "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, fitting: &[Value], others: &[Value]) {
        fitting.iter().for_each(|value| assert!(fits(value, schema), "{value} in {schema}"));
        others.iter().for_each(|value| assert!(!fits(value, schema), "{value} in {schema}"));
    }

    #[test]
    fn types_members_and_items_are_looked_at() {
        check(&json!(true), &[json!(1), json!({})], &[]);
        check(&json!({ "type": "integer" }), &[json!(1), json!(1.0)], &[json!(1.5), json!("1"), json!(null)]);
        check(&json!({ "type": ["string", "null"] }), &[json!("x"), json!(null)], &[json!(1), json!([])]);
        let object = json!({
            "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": { "city": { "type": "string", "minLength": 1 }, "days": { "type": "integer", "maximum": 7 } },
        });
        check(
            &object,
            &[json!({ "city": "Rome" }), json!({ "city": "Rome", "days": 3 })],
            &[
                json!({}),
                json!({ "city": "" }),
                json!({ "city": "Rome", "days": 9 }),
                json!({ "city": "x", "y": 1 }),
            ],
        );
        let list = json!({ "type": "array", "items": { "enum": [1, "a"] }, "minItems": 1 });
        check(&list, &[json!([1]), json!(["a", 1.0])], &[json!([]), json!([2])]);
        let pair = json!({ "prefixItems": [{ "type": "string" }], "items": false });
        check(&pair, &[json!(["x"]), json!([])], &[json!(["x", 1]), json!([1])]);
    }

    #[test]
    fn combinations_and_references_within_the_schema_are_followed() {
        check(
            &json!({ "anyOf": [{ "type": "string" }, { "const": 3 }] }),
            &[json!("x"), json!(3)],
            &[json!(4)],
        );
        check(&json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), &[json!(2)], &[json!(3)]);
        let tree = json!({
            "$ref": "#/$defs/node",
            "$defs": { "node": { "required": ["v"], "properties": { "next": { "$ref": "#/$defs/node" } } } },
        });
        check(&tree, &[json!({ "v": 1, "next": { "v": 2 } })], &[json!({ "v": 1, "next": {} })]);
    }

    /// IN-11: judging an answer by its schema takes bounded time.
    #[test]
    fn what_one_cannot_tell_counts_as_fitting_and_no_schema_takes_long() {
        check(&json!({ "pattern": "^a", "format": "date", "$ref": "http://x/y" }), &[json!("b")], &[]);
        check(&json!({ "$ref": "#" }), &[json!(1)], &[]);
        let wide = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, false], "not": {} });
        check(&wide, &[json!(1)], &[]);
        let mut deep = json!(1);
        (0..100).for_each(|_| deep = json!([deep]));
        check(&json!({ "items": { "$ref": "#" } }), &[deep], &[]);
    }
}
