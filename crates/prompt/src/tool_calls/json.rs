//! Calls that are JSON objects with a name and arguments: Hermes', Mistral's and Llama's.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::tool_names::ToolNames;

/// A call's name, and its arguments as JSON text.
pub(super) type WrittenCall = (String, String);

/// One object.
pub(super) fn parse_one(text: &str) -> Option<Vec<WrittenCall>> {
    Some(vec![parse_call(&serde_json::from_str(text).ok()?)?])
}

/// A list of objects.
pub(super) fn parse_list(text: &str) -> Option<Vec<WrittenCall>> {
    let list: Vec<Value> = serde_json::from_str(text).ok()?;
    list.iter().map(parse_call).collect()
}

/// Objects one after another, parted by blank or `;`; nothing if one of them calls no declared tool. An answer in JSON may have a
/// name too.
pub(super) fn parse_sequence(text: &str, tools: &ToolNames) -> Option<Vec<WrittenCall>> {
    let (calls, rest) = leading_calls(text, tools);
    rest.is_empty().then_some(calls)
}

/// The calls that such a text begins with, and what follows them.
pub(super) fn leading_calls<'t>(text: &'t str, tools: &ToolNames) -> (Vec<WrittenCall>, &'t str) {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while let Some(Ok((value, behind))) = split_first(rest, ';')
        && let Some(call) = parse_declared(&value, tools)
    {
        calls.push(call);
        rest = behind;
    }
    (calls, rest)
}

/// The calls that a list begins with, of which there may be no end. What is behind its bracket is told.
pub(super) fn leading_in_list(list: &str) -> Vec<WrittenCall> {
    let mut calls = Vec::new();
    let mut rest = list;
    while let Some(Ok((value, behind))) = split_first(rest, ',')
        && let Some(call) = parse_call(&value)
    {
        calls.push(call);
        rest = behind;
    }
    calls
}

/// Whether a text is the beginning of such objects: the last one breaks off, and its name is that of a declared tool so far. Behind
/// a whole call it may break off before its name.
pub(super) fn is_sequence_cut(text: &str, tools: &ToolNames) -> bool {
    let (calls, rest) = leading_calls(text, tools);
    let is_cut = matches!(split_first(rest, ';'), Some(Err(error)) if error.is_eof());
    let is_nameless = || !calls.is_empty() && !rest.contains("\"name\"");
    is_cut && (names_tool(rest, tools) || is_nameless())
}

/// The first value of a text, and what follows it and what parts it from the next.
fn split_first(text: &str, separator: char) -> Option<serde_json::Result<(Value, &str)>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next()?;
    let behind = text[stream.byte_offset()..].trim_start_matches([separator, ' ', '\n', '\t', '\r']);
    Some(value.map(|value| (value, behind)))
}

/// Whether an object that breaks off names a declared tool, or may be about to.
fn names_tool(object: &str, tools: &ToolNames) -> bool {
    let Some((_, behind)) = object.split_once("\"name\"") else { return false };
    let behind = behind.trim_start();
    let behind = behind.strip_prefix(':').unwrap_or(behind).trim_start();
    match behind.strip_prefix('"').map(|name| (name, name.split_once('"'))) {
        Some((_, Some((name, _)))) => tools.has(name),
        Some((begun, None)) => tools.has_beginning(begun),
        None => behind.is_empty(),
    }
}

/// A name and the JSON text of its arguments; nothing if they are none.
pub(super) fn call_from_parts(name: &str, arguments: &str) -> Option<WrittenCall> {
    let arguments = arguments.trim();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    let is_object = arguments.is_empty() || serde_json::from_str::<Value>(arguments).ok()?.is_object();
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    (is_name && is_object).then(|| (name.to_owned(), arguments.to_owned()))
}

/// Whether a text is the beginning of JSON that names a tool, and not the whole of it.
pub(super) fn is_unfinished(text: &str) -> bool {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    text.contains("\"name\"") && stream.find_map(Result::err).is_some_and(|error| error.is_eof())
}

/// Whether a text is the beginning of an object, and not the whole of it.
pub(super) fn is_object_cut(text: &str) -> bool {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let is_cut = |read: serde_json::Result<IgnoredAny>| read.is_err_and(|error| error.is_eof());
    text.trim_start().starts_with('{') && stream.next().is_some_and(is_cut)
}

/// Finds out whether JSON that grows ends inside a string. What was read is not read again.
#[derive(Debug, Clone, Default)]
pub(super) struct StringScanner {
    /// So many bytes were read.
    read: usize,
    is_inside: bool,
    is_escaped: bool,
    /// A line ended inside a string, which JSON does not allow: where strings end is not known from there on.
    is_broken: bool,
}

impl StringScanner {
    /// Whether this text ends inside a string. It must begin with the one before.
    pub(super) fn ends_inside(&mut self, text: &str) -> bool {
        for byte in text.as_bytes().get(self.read..).unwrap_or_default() {
            let is_quote = *byte == b'"' && !self.is_escaped;
            self.is_escaped = self.is_inside && *byte == b'\\' && !self.is_escaped;
            self.is_broken |= self.is_inside && *byte == b'\n';
            self.is_inside ^= is_quote;
        }
        self.read = text.len().max(self.read);
        self.is_inside && !self.is_broken
    }
}

/// A call of a declared tool that says with what it is called.
fn parse_declared(value: &Value, tools: &ToolNames) -> Option<WrittenCall> {
    let has_arguments = ["parameters", "arguments"].iter().any(|member| value.get(member).is_some());
    parse_call(value).filter(|(name, _)| has_arguments && tools.has(name))
}

fn parse_call(value: &Value) -> Option<WrittenCall> {
    let name = value.get("name")?.as_str()?.to_owned();
    let arguments = value.get("arguments").or_else(|| value.get("parameters"));
    let arguments = match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        // Some models write the object as a text.
        Some(Value::String(text)) => text.clone(),
        Some(object) => object.to_string(),
    };
    Some((name, arguments))
}
