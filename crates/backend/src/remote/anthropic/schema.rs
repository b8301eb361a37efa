//! Reduces a JSON schema to what Claude can be held to, as Anthropic's own SDK does: constraints that it does not take are told in
//! the description instead, and objects are closed. A schema that would mean something else then is not reduced at all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The formats of texts that are held to.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// What says nothing of a value.
const UNTOLD: [&str; 5] = ["$schema", "$id", "$comment", "$anchor", "discriminator"];
/// Where the definitions are that others refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// The largest count in a pattern that is held to.
const REPEATS_MAX: u32 = 50;

/// A schema that Claude takes, and what of the limits on a request it uses up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReducedSchema {
    pub(super) schema: Value,
    pub(super) size: SchemaSize,
}

/// What a request may have of so much over all its schemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchemaSize {
    /// Members that may be left out.
    pub(super) optional: usize,
    /// Values of more than one type.
    pub(super) unions: usize,
}

impl SchemaSize {
    /// The most that is taken.
    const MAX: SchemaSize = SchemaSize { optional: 24, unions: 16 };

    /// Both together, if a request may have that.
    pub(super) fn with(self, other: SchemaSize) -> Option<SchemaSize> {
        let sum = SchemaSize { optional: self.optional + other.optional, unions: self.unions + other.unions };
        (sum.optional <= SchemaSize::MAX.optional && sum.unions <= SchemaSize::MAX.unions).then_some(sum)
    }
}

/// The schema as it can be held to, if it can be.
pub(super) fn reduce(schema: &Value) -> Option<ReducedSchema> {
    if is_recursive(schema) {
        return None;
    }
    let mut size = SchemaSize::default();
    let schema = node(schema, &mut size)?;
    Some(ReducedSchema { schema, size })
}

fn node(schema: &Value, size: &mut SchemaSize) -> Option<Value> {
    let mut rest = schema.as_object()?.clone();
    let mut reduced = Map::new();
    UNTOLD.iter().for_each(|name| drop(rest.shift_remove(*name)));
    for name in DEFINITIONS {
        if let Some(definitions) = rest.shift_remove(name) {
            reduced.insert(name.to_owned(), all_members(&definitions, size)?);
        }
    }
    if let Some(target) = rest.shift_remove("$ref") {
        definition(target.as_str()?)?;
        reduced.insert("$ref".to_owned(), target);
        return Some(Value::Object(reduced));
    }
    if let Some(Value::Array(parts)) = rest.get("allOf") {
        // Several closed objects at once are none; one is that one.
        let [only] = parts.as_slice() else { return None };
        let only = node(only, size)?;
        rest.shift_remove("allOf");
        return (!has_shape(&rest)).then(|| described(only, reduced, rest)).flatten();
    }
    let is_typed = choices(&mut rest, &mut reduced, size)?;
    copy(&mut rest, &mut reduced, "description");
    copy(&mut rest, &mut reduced, "title");
    if is_typed {
        shape(&mut rest, &mut reduced, size)?;
    } else if has_shape(&rest) {
        return None;
    }
    Some(tell(reduced, &rest))
}

/// `anyOf`, `enum`, `const` or `type`; true for the last.
fn choices(
    rest: &mut Map<String, Value>,
    reduced: &mut Map<String, Value>,
    size: &mut SchemaSize,
) -> Option<bool> {
    for name in ["anyOf", "oneOf"] {
        let Some(Value::Array(variants)) = rest.get(name) else { continue };
        let variants: Option<Vec<Value>> = variants.iter().map(|variant| node(variant, size)).collect();
        size.unions += 1;
        reduced.insert("anyOf".to_owned(), variants.filter(|all| !all.is_empty())?.into());
        rest.shift_remove(name);
        rest.shift_remove("type");
        return Some(false);
    }
    let is_plain = |value: &Value| !value.is_array() && !value.is_object();
    let is_enum = rest
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty() && all.iter().all(is_plain));
    let is_const = rest.get("const").is_some_and(is_plain);
    if is_enum || is_const {
        for (name, is_there) in [("enum", is_enum), ("const", is_const)] {
            if is_there {
                copy(rest, reduced, name);
            }
        }
        rest.shift_remove("type");
        return Some(false);
    }
    let kind = rest.get("type")?;
    match kind {
        Value::String(_) => {}
        Value::Array(kinds) if !kinds.is_empty() => size.unions += usize::from(kinds.len() > 1),
        _ => return None,
    }
    copy(rest, reduced, "type");
    Some(true)
}

/// What is held to of a value of a type.
fn shape(
    rest: &mut Map<String, Value>,
    reduced: &mut Map<String, Value>,
    size: &mut SchemaSize,
) -> Option<()> {
    let kind = reduced["type"].clone();
    let is = |name: &str| {
        kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
    };
    if is("object") {
        object(rest, reduced, size)?;
    }
    if is("array") {
        if let Some(items) = rest.shift_remove("items") {
            reduced.insert("items".to_owned(), node(&items, size)?);
        }
        if rest.get("minItems").and_then(Value::as_u64).is_some_and(|least| least <= 1) {
            copy(rest, reduced, "minItems");
        }
    }
    if is("string") {
        if rest.get("format").and_then(Value::as_str).is_some_and(|format| FORMATS.contains(&format)) {
            copy(rest, reduced, "format");
        }
        if rest.get("pattern").and_then(Value::as_str).is_some_and(is_plain_pattern) {
            copy(rest, reduced, "pattern");
        }
    }
    Some(())
}

/// A closed object. One whose members' names are not known beforehand cannot be closed.
fn object(
    rest: &mut Map<String, Value>,
    reduced: &mut Map<String, Value>,
    size: &mut SchemaSize,
) -> Option<()> {
    let more = rest.shift_remove("additionalProperties");
    if rest.contains_key("patternProperties") || more.as_ref().is_some_and(Value::is_object) {
        return None;
    }
    let is_closed = more == Some(Value::Bool(false));
    let members = match rest.shift_remove("properties") {
        Some(members) => members,
        None if is_closed => json!({}),
        None => return None,
    };
    let known = members.as_object()?;
    if known.is_empty() && more == Some(Value::Bool(true)) {
        return None;
    }
    let required = rest.shift_remove("required");
    let required: Vec<&str> =
        required.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if required.iter().any(|name| !known.contains_key(*name)) {
        return None;
    }
    size.optional += known.len() - required.iter().collect::<BTreeSet<_>>().len();
    reduced.insert("properties".to_owned(), all_members(&members, size)?);
    reduced.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        reduced.insert("required".to_owned(), json!(required));
    }
    Some(())
}

fn all_members(members: &Value, size: &mut SchemaSize) -> Option<Value> {
    let reduced = members.as_object()?.iter().map(|(name, member)| Some((name.clone(), node(member, size)?)));
    Some(Value::Object(reduced.collect::<Option<Map<_, _>>>()?))
}

/// True if something of it says what members or items there are: that cannot be told in a description alone.
fn has_shape(rest: &Map<String, Value>) -> bool {
    ["properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "required"]
        .iter()
        .any(|name| rest.contains_key(*name))
}

/// The only part of a whole, with what the whole says of it.
fn described(only: Value, definitions: Map<String, Value>, mut rest: Map<String, Value>) -> Option<Value> {
    let Value::Object(mut only) = only else { return None };
    only.extend(definitions);
    rest.shift_remove("type");
    if only.contains_key("$ref") {
        return Some(Value::Object(only));
    }
    for name in ["description", "title"] {
        copy(&mut rest, &mut only, name);
    }
    Some(tell(only, &rest))
}

/// Tells in the description what is not held to.
fn tell(mut reduced: Map<String, Value>, rest: &Map<String, Value>) -> Value {
    if !rest.is_empty() {
        let said = reduced.get("description").and_then(Value::as_str).map(|text| format!("{text}\n\n"));
        let rest: Vec<String> = rest.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let text = format!("{}{{{}}}", said.unwrap_or_default(), rest.join(", "));
        reduced.insert("description".to_owned(), text.into());
    }
    Value::Object(reduced)
}

fn copy(from: &mut Map<String, Value>, to: &mut Map<String, Value>, name: &str) {
    if let Some(value) = from.shift_remove(name) {
        to.insert(name.to_owned(), value);
    }
}

/// The name of the definition that a reference leads to, within the schema.
fn definition(target: &str) -> Option<&str> {
    let name =
        DEFINITIONS.iter().find_map(|at| target.strip_prefix("#/")?.strip_prefix(at)?.strip_prefix('/'));
    name.filter(|name| !name.is_empty() && !name.contains('/'))
}

/// True for a schema in which a definition leads back to itself, or that refers to itself as a whole.
fn is_recursive(schema: &Value) -> bool {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for definitions in DEFINITIONS.iter().filter_map(|at| schema.get(at)?.as_object()) {
        for (name, definition) in definitions {
            let mut targets = Vec::new();
            collect_targets(definition, &mut targets);
            edges.entry(name).or_default().extend(targets);
        }
    }
    leads_back(&edges)
}

/// Whether anything leads back to itself. What leads nowhere is taken out until nothing is left, or only circles are.
fn leads_back(edges: &BTreeMap<&str, Vec<&str>>) -> bool {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, targets) in edges {
        let known = targets.iter().filter(|target| edges.contains_key(**target));
        known.clone().for_each(|target| sources.entry(*target).or_default().push(*name));
        left.insert(*name, known.count());
    }
    let mut ends: Vec<&str> = left.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    let mut taken_out = 0;
    while let Some(end) = ends.pop() {
        taken_out += 1;
        for source in sources.get(end).into_iter().flatten() {
            if let Some(count) = left.get_mut(*source) {
                *count -= 1;
                ends.extend((*count == 0).then_some(*source));
            }
        }
    }
    taken_out < edges.len()
}

fn collect_targets<'s>(schema: &'s Value, targets: &mut Vec<&'s str>) {
    match schema {
        Value::Object(members) => {
            targets.extend(members.get("$ref").and_then(Value::as_str).and_then(definition));
            members.values().for_each(|member| collect_targets(member, targets));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_targets(item, targets)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// True for a pattern of nothing but signs, classes, groups and small counts: no looking around, no references to groups, no
/// edges of words.
fn is_plain_pattern(pattern: &str) -> bool {
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_plain = match letter {
            '\\' => letters.next().is_some_and(|escaped| "dDwWsS.^$*+?()[]{}|/-\\".contains(escaped)),
            '(' => letters.peek() != Some(&'?'),
            '{' => {
                let counts: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                let is_small = |count: &str| count.parse::<u32>().is_ok_and(|count| count <= REPEATS_MAX);
                counts.split(',').all(is_small)
            }
            _ => true,
        };
        if !is_plain {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, expected: &Value) {
        assert_eq!(reduce(schema).unwrap().schema, *expected, "{schema}");
    }

    fn object(members: &Value, required: &[&str]) -> Value {
        json!({ "type": "object", "properties": members, "additionalProperties": false, "required": required })
    }

    #[test]
    fn constraints_that_are_not_held_to_are_told_and_objects_are_closed() {
        let review = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "Review",
            "properties": {
                "score": { "type": "integer", "minimum": 1, "maximum": 10 },
                "summary": { "type": "string", "maxLength": 280, "description": "In short." },
                "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 3 },
            }, "required": ["score", "summary", "tags"] });
        check(
            &review,
            &json!({ "type": "object", "title": "Review", "properties": {
                "score": { "type": "integer", "description": "{minimum: 1, maximum: 10}" },
                "summary": { "type": "string", "description": "In short.\n\n{maxLength: 280}" },
                "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "{maxItems: 3}" },
            }, "additionalProperties": false, "required": ["score", "summary", "tags"] }),
        );
    }

    #[test]
    fn what_is_held_to_stays() {
        let members = json!({
            "day": { "type": "string", "format": "date" },
            "color": { "enum": ["red", "blue"] },
            "kind": { "const": "a" },
            "age": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "zip": { "type": "string", "pattern": "^\\d{5}$" },
            "address": { "$ref": "#/$defs/Address" },
        });
        let names = ["day", "color", "kind", "age", "zip", "address"];
        let mut schema = object(&members, &names);
        schema["$defs"] =
            json!({ "Address": object(&json!({ "street": { "type": "string" } }), &["street"]) });
        let reduced = reduce(&schema).unwrap();
        assert_eq!((&reduced.schema, reduced.size), (&schema, SchemaSize { optional: 0, unions: 1 }));
    }

    #[test]
    fn other_words_for_the_same_are_put_in_its_own() {
        let one = json!({ "oneOf": [{ "type": "string", "format": "phone" }, { "type": "null" }] });
        let any = json!({ "anyOf": [{ "type": "string", "description": "{format: \"phone\"}" }, { "type": "null" }] });
        check(&one, &any);
        check(
            &json!({ "type": "string", "enum": ["a"], "default": "a" }),
            &json!({ "enum": ["a"], "description": "{default: \"a\"}" }),
        );
        let pattern = json!({ "type": "string", "pattern": "(?=a)b" });
        check(&pattern, &json!({ "type": "string", "description": "{pattern: \"(?=a)b\"}" }));
        let only = json!({ "allOf": [{ "type": "string" }], "description": "A name." });
        check(&only, &json!({ "type": "string", "description": "A name." }));
    }

    #[test]
    fn what_would_mean_something_else_is_not_reduced() {
        let node = json!({ "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Node" } } } });
        let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        for schema in [
            json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } }),
            json!({ "type": "object", "properties": { "again": { "$ref": "#" } } }),
            map.clone(),
            json!({ "type": "object", "properties": { "counts": map } }),
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": { "anything": {} } }),
            json!({ "allOf": [{ "type": "object", "properties": {} }, { "type": "object", "properties": {} }] }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "anyOf": [{ "required": ["a"] }] }),
            json!({ "$ref": "https://example.com/schema.json" }),
            json!(true),
        ] {
            assert_eq!(reduce(&schema), None, "{schema}");
        }
    }

    #[test]
    fn what_may_be_left_out_or_be_of_two_types_is_counted() {
        let members = json!({ "a": { "type": ["string", "null"] }, "b": { "type": "string" } });
        assert_eq!(reduce(&object(&members, &["b"])).unwrap().size, SchemaSize { optional: 1, unions: 1 });
        let most = SchemaSize { optional: 24, unions: 16 };
        assert_eq!(most.with(SchemaSize::default()), Some(most));
        assert_eq!(most.with(SchemaSize { optional: 1, unions: 0 }), None);
    }
}
