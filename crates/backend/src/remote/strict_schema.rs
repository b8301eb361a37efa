//! Schemas for upstreams with OpenAI's rules. There an object says what members it has, even where it has none. Schemas that were
//! written by Anthropic's rules are put otherwise, too: a strict schema requires all members of an object there. One that may be left
//! out is required here if it may be null, too: then the answer fits the caller's schema all the same. A schema that cannot be put so
//! is not held to.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use stint_types::chat::{Request, SchemaRules, Tool};

/// What says something of a value that strict schemas do not take.
const REFUSED: [&str; 13] = [
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "minLength",
    "maxLength",
    "unevaluatedProperties",
];

/// The form of the answer, as OpenAI takes it.
pub(super) fn response_format(request: &Request) -> Option<Value> {
    let mut format = request.response_format.clone()?;
    if request.schema_rules == SchemaRules::Anthropic
        && let Some(named) = format.get_mut("json_schema").and_then(Value::as_object_mut)
    {
        hold(named, "schema");
    }
    Some(format)
}

/// A tool's declaration, as OpenAI takes it.
pub(super) fn declaration(request: &Request, tool: &Tool) -> Value {
    let mut declaration = tool.declaration.clone();
    if let Some(function) = declaration.get_mut("function").and_then(Value::as_object_mut) {
        if request.schema_rules == SchemaRules::Anthropic {
            hold(function, "parameters");
        }
        if let Some(Value::Object(parameters)) = function.get_mut("parameters") {
            state_members(parameters);
        }
    }
    declaration
}

/// What says in its own way of what a value consists.
const STATED_OTHERWISE: [&str; 7] = ["$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const"];

/// Says of an object that its members are those that are listed: OpenAI refuses one that lists none.
fn state_members(schema: &mut Map<String, Value>) {
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    if is_object && !STATED_OTHERWISE.iter().any(|name| schema.contains_key(*name)) {
        schema.entry("type").or_insert_with(|| json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
    }
}

/// Puts a schema that is to be held to as strict ones must be, or has it not held to.
fn hold(members: &mut Map<String, Value>, schema: &str) {
    if members.get("strict") != Some(&Value::Bool(true)) {
        return;
    }
    let strict = members.get(schema).filter(|schema| schema["type"] == "object").and_then(completed);
    match strict {
        Some(strict) => drop(members.insert(schema.to_owned(), strict)),
        None => drop(members.insert("strict".to_owned(), json!(false))),
    }
}

/// The schema with all members required, where that is the same to who reads what fits it.
fn completed(schema: &Value) -> Option<Value> {
    let mut node = schema.as_object()?.clone();
    if REFUSED.iter().any(|name| node.contains_key(*name)) {
        return None;
    }
    // These two hold nobody to anything there, and are refused.
    node.shift_remove("default");
    if node.get("format").is_some_and(|format| format == "uri") {
        node.shift_remove("format");
    }
    add_type(&mut node);
    for name in ["properties", "$defs", "definitions"] {
        if let Some(Value::Object(members)) = node.get_mut(name) {
            members.values_mut().try_for_each(complete_in_place)?;
        }
    }
    if let Some(items) = node.get_mut("items") {
        complete_in_place(items)?;
    }
    if let Some(Value::Array(variants)) = node.get_mut("anyOf") {
        variants.iter_mut().try_for_each(complete_in_place)?;
    }
    let is_object = node.get("type").is_some_and(|kind| kinds(kind).any(|kind| kind == "object"));
    if is_object || node.contains_key("properties") {
        require_all(&mut node)?;
    }
    Some(Value::Object(node))
}

fn complete_in_place(schema: &mut Value) -> Option<()> {
    *schema = completed(schema)?;
    Some(())
}

fn require_all(node: &mut Map<String, Value>) -> Option<()> {
    if node.get("additionalProperties") != Some(&Value::Bool(false)) {
        return None;
    }
    let empty = Map::new();
    let members = node.get("properties").map_or(Some(&empty), Value::as_object)?;
    let listed = node.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: HashSet<&str> = listed.filter_map(Value::as_str).collect();
    if members.iter().any(|(name, member)| !required.contains(name.as_str()) && !may_be_null(member)) {
        return None;
    }
    let names: Vec<Value> = members.keys().map(|name| json!(name)).collect();
    node.insert("required".to_owned(), names.into());
    Some(())
}

fn may_be_null(schema: &Value) -> bool {
    let has_null =
        |name: &str| schema[name].as_array().is_some_and(|values| values.iter().any(Value::is_null));
    let is_typed = kinds(&schema["type"]).any(|kind| kind == "null");
    let is_listed = schema.get("enum").is_none() || has_null("enum");
    let variants = schema["anyOf"].as_array();
    (is_typed && is_listed) || variants.is_some_and(|variants| variants.iter().any(may_be_null))
}

/// Says of listed values what they are, which Anthropic's rules do without.
fn add_type(node: &mut Map<String, Value>) {
    if node.contains_key("type") {
        return;
    }
    let listed = node.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = listed.or(node.get("const").map(std::slice::from_ref)).unwrap_or_default();
    let mut kinds: Vec<&str> = values.iter().map(kind_of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = match kinds.as_slice() {
        [] => return,
        [one] => json!(one),
        several => json!(several),
    };
    node.insert("type".to_owned(), kind);
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// One type, or each of a list.
fn kinds(kind: &Value) -> impl Iterator<Item = &str> {
    kind.as_str().into_iter().chain(kind.as_array().into_iter().flatten().filter_map(Value::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(members: &Value, required: &[&str]) -> Value {
        json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
    }

    fn check(schema: &Value, expected: &Option<Value>) {
        assert_eq!(completed(schema), *expected, "{schema}");
    }

    #[test]
    fn a_member_that_may_be_null_is_required_and_what_is_refused_is_taken_out() {
        let age = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null });
        let members = json!({ "name": { "type": "string" }, "age": age, "page": { "type": "string", "format": "uri" } });
        let strict = json!({
            "name": { "type": "string" }, "age": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "page": { "type": "string" },
        });
        check(&closed(&members, &["name", "page"]), &Some(closed(&strict, &["name", "age", "page"])));
        let listed = json!({ "color": { "enum": ["red", null] }, "kind": { "const": "a" } });
        let typed = json!({
            "color": { "enum": ["red", null], "type": ["null", "string"] }, "kind": { "const": "a", "type": "string" },
        });
        check(&closed(&listed, &["kind"]), &Some(closed(&typed, &["color", "kind"])));
    }

    #[test]
    fn what_strict_schemas_cannot_say_is_not_held_to() {
        check(&closed(&json!({ "a": { "type": "string" }, "b": { "type": "integer" } }), &["a"]), &None);
        check(&json!({ "type": "object", "properties": {} }), &None);
        check(&closed(&json!({ "a": { "oneOf": [{ "type": "string" }] } }), &["a"]), &None);
        let inner = json!({ "a": { "type": "array", "items": { "type": "object", "properties": {} } } });
        check(&closed(&inner, &["a"]), &None);
    }

    #[test]
    fn a_tool_without_arguments_says_that_it_has_none() {
        let request = Request::new("m", Vec::new());
        let empty = json!({ "type": "object", "properties": {} });
        let reference = json!({ "$ref": "#/$defs/a", "$defs": {} });
        for (parameters, expected) in [
            (json!({}), &empty),
            (json!({ "type": "object" }), &empty),
            (json!({ "properties": {} }), &empty),
            (reference.clone(), &reference),
        ] {
            let function = json!({ "name": "now", "parameters": parameters });
            let tool = Tool::new("now", json!({ "type": "function", "function": function }));
            assert_eq!(declaration(&request, &tool)["function"]["parameters"], *expected);
        }
    }

    #[test]
    fn only_what_anthropics_rules_wrote_is_put_otherwise() {
        let schema = closed(&json!({ "a": { "type": "string" } }), &[]);
        let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "strict": true, "schema": schema } });
        let mut request = Request { response_format: Some(format.clone()), ..Request::new("m", Vec::new()) };
        assert_eq!(response_format(&request), Some(format));
        request.schema_rules = SchemaRules::Anthropic;
        assert_eq!(response_format(&request).unwrap()["json_schema"]["strict"], false);
    }
}
