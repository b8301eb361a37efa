//! Tools that take plain text: here they are tools of their own kind, where backends know functions with that text as an argument.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::remote::call_ids::limited_id;
use stint_types::chat::{CUSTOM_INPUT, Request, Tool, ToolCall};

/// The longest id of a call that is taken.
pub(super) const CALL_ID_MAX: usize = 64;

/// A tool's declaration as a custom one, if it is one.
pub(super) fn declaration(tool: &Tool) -> Option<Value> {
    let mut custom = tool.custom.clone()?;
    // It may have been shortened.
    custom["name"] = tool.name.as_str().into();
    Some(custom)
}

/// The names of the custom tools.
pub(super) fn names(request: &Request) -> HashSet<&str> {
    request.tools.iter().filter(|tool| tool.custom.is_some()).map(|tool| tool.name.as_str()).collect()
}

/// The custom tools of a request, and the calls of them. A conversation may have thousands.
#[derive(Debug)]
pub(super) struct CustomCalls<'r> {
    tools: HashSet<&'r str>,
    ids: HashSet<&'r str>,
}

impl<'r> CustomCalls<'r> {
    /// Those of a request.
    pub(super) fn of(request: &'r Request) -> CustomCalls<'r> {
        let mut calls = CustomCalls { tools: names(request), ids: HashSet::new() };
        if !calls.tools.is_empty() {
            let all = request.messages.iter().flat_map(|message| &message.tool_calls);
            calls.ids =
                all.filter(|call| calls.as_call(call).is_some()).map(|call| call.id.as_str()).collect();
        }
        calls
    }

    /// True for the result of a call of a custom tool.
    pub(super) fn has_result(&self, call_id: &str) -> bool {
        self.ids.contains(call_id)
    }

    /// A call as one of a custom tool, if it is one.
    pub(super) fn as_call(&self, ToolCall { id, name, arguments }: &ToolCall) -> Option<Value> {
        if !self.tools.contains(name.as_str()) {
            return None;
        }
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let input = arguments.get(CUSTOM_INPUT)?.as_str()?;
        let id = limited_id(id, CALL_ID_MAX);
        Some(json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": input}))
    }
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
