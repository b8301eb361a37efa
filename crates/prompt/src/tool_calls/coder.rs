//! Calls as Qwen's coders and its later families write them: `<function=name>` around one `<parameter=name>` for each
//! argument, whose value stands there as it is.

use std::collections::BTreeSet;

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

/// The parameters that are declared to be texts, each with its tool.
#[derive(Debug, Clone, Default)]
pub(super) struct StringParams(BTreeSet<(String, String)>);

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
                .filter(|(_, property)| property.get("type").and_then(Value::as_str) == Some("string"))
                .map(|(parameter, _)| (name.clone(), parameter.clone()))
                .collect::<Vec<_>>()
        };
        StringParams(tools.iter().flat_map(texts).collect())
    }

    fn contains(&self, tool: &str, parameter: &str) -> bool {
        self.0.contains(&(tool.to_owned(), parameter.to_owned()))
    }
}

/// One or more functions; nothing if the text is anything else.
pub(super) fn read(text: &str, texts: &StringParams) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, body) = rest.strip_prefix(START)?.split_once('>')?;
        let (body, after) = body.split_once(END)?;
        calls.push((name.trim().to_owned(), arguments(name.trim(), body, texts)?));
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

/// The arguments of a function as JSON text.
fn arguments(tool: &str, body: &str, texts: &StringParams) -> Option<String> {
    let mut arguments = Map::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let (name, value) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (value, after) = value.split_once("</parameter>")?;
        // One line end on either side belongs to the tags.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value =
            if texts.contains(tool, name) { Value::String(value.to_owned()) } else { infer_value(value) };
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
