//! The settings as a JSON schema, by which editors complete and check a configuration.

use serde_json::{Map, Value, json};

use crate::config::reader::{KeyShape, ValueShape};

use super::comments::Comments;
use super::record::{NotedKeys, Recorded};

/// The schema of a whole configuration.
pub(super) fn schema(recorded: &Recorded, comments: &Comments) -> Value {
    let keys = Keys { keys: &recorded.all, comments: Some(comments) };
    let mut schema = keys.object("");
    let members = schema.as_object_mut();
    members.into_iter().for_each(|members| {
        members.insert("title".into(), "Stint's configuration".into());
        members.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    });
    schema["properties"]["backend"]["items"]["allOf"] =
        recorded.by_kind.iter().map(|(kind, keys)| of_kind(kind, keys, &recorded.all)).collect();
    schema
}

/// The keys that backends of a kind have, and their words where they are fewer. One that names no kind is of the usual one.
fn of_kind(kind: &str, keys: &NotedKeys, all: &NotedKeys) -> Value {
    let mut condition = json!({ "properties": { "kind": { "const": kind } } });
    if kind != "openai" {
        condition["required"] = json!(["kind"]);
    }
    let mut then = own_keys("backend[].", keys, all);
    for below in ["model", "deployment"] {
        if keys.contains_key(&format!("backend[].{below}")) {
            let items = own_keys(&format!("backend[].{below}[]."), keys, all);
            then["properties"][below] = json!({ "items": items });
        }
    }
    json!({ "if": condition, "then": then })
}

fn own_keys(section: &str, keys: &NotedKeys, all: &NotedKeys) -> Value {
    let own: Vec<(&str, &KeyShape)> =
        in_section(section, keys).map(|(name, shape, _)| (name, shape)).collect();
    let names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
    let mut properties = Map::new();
    for (name, shape) in own {
        let is_same = all.get(&format!("{section}{name}")).is_some_and(|(usual, _)| usual == shape);
        if !is_same && matches!(shape, KeyShape::Word(_) | KeyShape::Words(_)) {
            properties.insert(
                name.to_owned(),
                Keys { keys, comments: None }.value(&format!("{section}{name}"), shape),
            );
        }
    }
    json!({ "propertyNames": { "enum": names }, "properties": properties })
}

/// The keys right in a section.
fn in_section<'k>(
    section: &'k str,
    keys: &'k NotedKeys,
) -> impl Iterator<Item = (&'k str, &'k KeyShape, bool)> {
    let own = keys.iter().filter_map(move |(path, noted)| Some((path.strip_prefix(section)?, noted)));
    own.filter(|(name, _)| !name.contains('.'))
        .map(|(name, (shape, is_required))| (name, shape, *is_required))
}

struct Keys<'k> {
    keys: &'k NotedKeys,
    comments: Option<&'k Comments>,
}

impl Keys<'_> {
    /// A section, by the path before its keys.
    fn object(&self, section: &str) -> Value {
        let (mut properties, mut required, mut others) = (Map::new(), Vec::new(), Value::Bool(false));
        for (name, shape, is_required) in in_section(section, self.keys) {
            let value = self.described(&format!("{section}{name}"), shape);
            if is_required {
                required.push(name);
            }
            if name == "*" {
                others = value;
            } else {
                properties.insert(name.to_owned(), value);
            }
        }
        let mut object =
            json!({ "type": "object", "properties": properties, "additionalProperties": others });
        if !required.is_empty() {
            object["required"] = required.into();
        }
        object
    }

    fn described(&self, path: &str, shape: &KeyShape) -> Value {
        let mut value = self.value(path, shape);
        let Some(comments) = self.comments else { return value };
        let comment = comments.of(path);
        if !comment.help.is_empty() {
            value["description"] = comment.help.into();
        }
        if let Some(default) = comment.default {
            value["default"] = json!(default);
        }
        if let Some(example) = comment.example {
            value["examples"] = json!([example]);
        }
        value
    }

    fn value(&self, path: &str, shape: &KeyShape) -> Value {
        match shape {
            KeyShape::Unread => json!({}),
            KeyShape::Value(shape) => of_value(shape),
            KeyShape::Ranged(shape, least, most) => in_range(shape, least, most),
            KeyShape::Word(words) => json!({ "enum": words }),
            KeyShape::Words(words) => {
                json!({ "type": "array", "items": { "enum": words }, "uniqueItems": true })
            }
            KeyShape::Section => self.object(&format!("{path}.")),
            KeyShape::Sections => json!({ "type": "array", "items": self.object(&format!("{path}[].")) }),
        }
    }
}

fn of_value(shape: &ValueShape) -> Value {
    match shape {
        ValueShape::Text | ValueShape::Network | ValueShape::Address | ValueShape::Path => {
            json!({ "type": "string", "minLength": 1 })
        }
        ValueShape::AnyText | ValueShape::Moment => json!({ "type": "string" }),
        ValueShape::Flag => json!({ "type": "boolean" }),
        ValueShape::Number => json!({ "type": "number" }),
        ValueShape::Integer => json!({ "type": "integer", "minimum": 0 }),
        // Numbers and units, in the forms that are read; whether it is within its limits `stint check` says.
        ValueShape::Size => {
            json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *(KiB|MiB)$" })
        }
        ValueShape::Time => json!({ "type": "string", "pattern": "[0-9] *[a-zA-Zµ]" }),
        ValueShape::Money => {
            json!({ "type": ["string", "integer"], "minimum": 0, "pattern": "^[0-9]*[.]?[0-9]*$" })
        }
        ValueShape::List(items) => json!({ "type": "array", "items": of_value(items) }),
        ValueShape::Either(one, other) => json!({ "anyOf": [of_value(one), of_value(other)] }),
    }
}

/// Of numbers the range is checked; the range of a time or of a size is described in words.
fn in_range(shape: &ValueShape, least: &str, most: &str) -> Value {
    let mut value = of_value(shape);
    let ends = (least.parse::<serde_json::Number>(), most.parse::<serde_json::Number>());
    if let (ValueShape::Number | ValueShape::Integer, (Ok(least), Ok(most))) = (shape, ends) {
        value["minimum"] = least.into();
        value["maximum"] = most.into();
    }
    value
}
