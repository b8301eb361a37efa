//! Calls that are JSON objects with a name and arguments: Hermes', Mistral's and Llama's.

use serde_json::Value;

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

/// Objects one after another, parted by blank or `;`; nothing if one of them is none.
pub(super) fn parse_sequence(text: &str) -> Option<Vec<WrittenCall>> {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        calls.push(parse_call(&stream.next()?.ok()?)?);
        rest = rest[stream.byte_offset()..].trim_start_matches([';', ' ', '\n', '\t', '\r']);
    }
    Some(calls)
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
