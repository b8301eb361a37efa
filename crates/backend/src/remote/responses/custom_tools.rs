//! Tools that take plain text: here they are tools of their own kind, where backends know functions with that text as an argument.

use serde_json::{Value, json};

use stint_types::chat::{CUSTOM_INPUT, Request, Tool, ToolCall};

/// A tool's declaration as a custom one, if it is one.
pub(super) fn declaration(tool: &Tool) -> Option<Value> {
    let mut custom = tool.custom.clone()?;
    // It may have been shortened.
    custom["name"] = tool.name.as_str().into();
    Some(custom)
}

/// The kind of the tool that has this name.
pub(super) fn kind(request: &Request, name: &str) -> &'static str {
    let is_custom = request.tools.iter().any(|tool| tool.name == name && tool.custom.is_some());
    if is_custom { "custom" } else { "function" }
}

/// True for the result of a call of a custom tool.
pub(super) fn is_result(request: &Request, call_id: &str) -> bool {
    let mut calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    calls.any(|call| call.id == call_id && as_call(request, call).is_some())
}

/// A call as one of a custom tool, if it is one.
pub(super) fn as_call(request: &Request, ToolCall { id, name, arguments }: &ToolCall) -> Option<Value> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let input = arguments.get(CUSTOM_INPUT)?.as_str().filter(|_| kind(request, name) == "custom")?;
    Some(json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": input}))
}

/// What stands before a text that comes in pieces, to make it the argument of a function.
pub(super) fn arguments_begin() -> String {
    format!("{{\"{CUSTOM_INPUT}\":\"")
}

/// And what stands behind it.
pub(super) const ARGUMENTS_END: &str = "\"}";

/// A piece of the text, as it stands between the two.
pub(super) fn escaped(piece: &str) -> String {
    let quoted = json!(piece).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_text_make_the_argument_of_a_function() {
        let pieces = ["*** Begin \"Patch\"\n", "+a\\b\t\u{1F980}", ""];
        let written: String = pieces.iter().map(|piece| escaped(piece)).collect();
        let arguments: Value =
            serde_json::from_str(&[&arguments_begin(), &written, ARGUMENTS_END].concat()).unwrap();
        assert_eq!(arguments, json!({ "input": pieces.concat() }));
    }
}
