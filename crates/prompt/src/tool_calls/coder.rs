//! Calls as Qwen's coders and its later families write them: `<function=name>` around one `<parameter=name>` for each
//! argument, whose value stands there as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use stint_types::chat::Tool;

use super::json::WrittenCall;

/// What ends a function.
pub(super) const END: &str = "</function>";

/// What begins a function of that name.
pub(super) fn start(name: &str) -> String {
    format!("{START}{name}>")
}

/// True for what begins a function.
pub(super) fn is_start(tag: &str) -> bool {
    tag.starts_with(START)
}

const START: &str = "<function=";

/// What begins an argument.
const PARAMETER: &str = "<parameter=";

/// The parameters that are declared to be texts, each with its tool.
#[derive(Debug, Clone, Default)]
pub(super) struct StringParams(BTreeMap<(String, String), TextParam>);

/// What a parameter that may be a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextParam {
    Text,
    /// A text or null.
    Nullable,
}

impl TextParam {
    /// What a parameter of this schema may be; nothing where it may be no text.
    fn of(schema: &Value) -> Option<TextParam> {
        let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
        let forms: Vec<&Value> = std::iter::once(schema).chain(branches).collect();
        let is_nullable = schema.get("nullable") == Some(&Value::Bool(true))
            || forms.iter().any(|form| has_type(form, "null") || enumerated(form).any(Value::is_null));
        let is_text = |form: &&Value| has_type(form, "string") || is_enum_of_texts(form);
        let kind = if is_nullable { TextParam::Nullable } else { TextParam::Text };
        forms.iter().any(is_text).then_some(kind)
    }

    fn read(self, value: &str) -> Value {
        match self {
            TextParam::Nullable if matches!(value.trim(), "null" | "None") => Value::Null,
            TextParam::Text | TextParam::Nullable => Value::String(value.to_owned()),
        }
    }
}

/// Whether a schema's type is this one, or one of several.
fn has_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// The values that a schema lists.
fn enumerated(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("enum").and_then(Value::as_array).into_iter().flatten()
}

/// Whether a schema lists texts, and beside them null at most.
fn is_enum_of_texts(schema: &Value) -> bool {
    enumerated(schema).any(Value::is_string)
        && enumerated(schema).all(|value| value.is_string() || value.is_null())
}

impl StringParams {
    pub(super) fn of(tools: &[Tool]) -> StringParams {
        let texts = |tool: &Tool| {
            let declared = &tool.declaration;
            let parameters = [declared.pointer("/function/parameters"), declared.get("parameters")];
            let properties =
                parameters.into_iter().flatten().find_map(|all| all.get("properties")?.as_object());
            let name = tool.name.clone();
            properties
                .into_iter()
                .flatten()
                .filter_map(|(parameter, schema)| {
                    Some(((name.clone(), parameter.clone()), TextParam::of(schema)?))
                })
                .collect::<Vec<_>>()
        };
        StringParams(tools.iter().flat_map(texts).collect())
    }

    fn get(&self, tool: &str, parameter: &str) -> Option<TextParam> {
        self.0.get(&(tool.to_owned(), parameter.to_owned())).copied()
    }
}

/// One or more functions; nothing if the text is anything else.
pub(super) fn read(text: &str, texts: &StringParams) -> Option<Vec<WrittenCall>> {
    let (calls, rest) = leading_calls(text, texts);
    (rest.is_empty() && !calls.is_empty()).then_some(calls)
}

/// The functions that a text begins with, and what follows them.
pub(super) fn leading_calls<'t>(text: &'t str, texts: &StringParams) -> (Vec<WrittenCall>, &'t str) {
    let (mut calls, mut rest) = (Vec::new(), text);
    while let Some((call, behind)) = read_one(rest, texts) {
        calls.push(call);
        rest = behind;
    }
    (calls, rest)
}

fn read_one<'t>(text: &'t str, texts: &StringParams) -> Option<(WrittenCall, &'t str)> {
    let (name, body) = text.strip_prefix(START)?.split_once('>')?;
    let (body, after) = body.split_once(END)?;
    let name = name.trim();
    Some(((name.to_owned(), arguments(name, body, texts)?), after.trim_start()))
}

/// Whether what stands behind the tag that opened a call is the beginning of one, and not the whole of it.
pub(super) fn is_truncated(opened: &str, text: &str) -> bool {
    let (text, first) = (text.trim(), if is_start(opened) { PARAMETER } else { START });
    let is_begun = text.starts_with(first) || (!text.is_empty() && first.starts_with(text));
    is_begun && !text.ends_with(END)
}

/// The arguments of a function as JSON text.
fn arguments(tool: &str, body: &str, texts: &StringParams) -> Option<String> {
    let mut arguments = Map::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let (name, value) = rest.strip_prefix(PARAMETER)?.split_once('>')?;
        let (value, after) = value.split_once("</parameter>")?;
        // One line end on either side belongs to the tags.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value = texts.get(tool, name).map_or_else(|| infer_value(value), |text| text.read(value));
        arguments.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    Some(Value::Object(arguments).to_string())
}

/// A value of unknown kind: what it reads as, in JSON or as Python writes it, which templates have shown the model.
fn infer_value(value: &str) -> Value {
    match value.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "None" => Value::Null,
        trimmed => serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(value.to_owned())),
    }
}
