//! Names of tools that are longer than a provider takes. It is sent short ones, and what it calls has its own name again.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::{Failure, Piece};
use stint_types::chat::{Request, Role, short_tool_name};

use super::EventReader;

/// The names that are too long, by the short ones that are sent in their place. Most requests have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShortToolNames(BTreeMap<String, String>);

impl ShortToolNames {
    /// Those of the tools that a request declares, and of the earlier calls in it.
    pub(super) fn of(request: &Request) -> ShortToolNames {
        let declared = request.tools.iter().map(|tool| &tool.name);
        let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
        let shortened = |name: &String| match short_tool_name(name) {
            Cow::Owned(short) => Some((short, name.clone())),
            Cow::Borrowed(_) => None,
        };
        ShortToolNames(declared.chain(calls.map(|call| &call.name)).filter_map(shortened).collect())
    }

    /// True if no name is too long.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The piece with the tool's own name.
    fn restore(&self, piece: &mut Piece) {
        if let Piece::ToolCall(call) = piece
            && let Some(own) = call.name.as_ref().and_then(|name| self.0.get(name))
        {
            call.name = Some(own.clone());
        }
    }
}

/// The request with the short names wherever it names a tool.
pub(super) fn shorten(request: &Request) -> Request {
    let mut request = request.clone();
    for tool in &mut request.tools {
        shorten_name(&mut tool.name);
        ["/function/name", "/name"].iter().for_each(|at| shorten_at(&mut tool.declaration, at));
    }
    for call in request.messages.iter_mut().flat_map(|message| &mut message.tool_calls) {
        shorten_name(&mut call.name);
    }
    for result in request.messages.iter_mut().filter(|message| message.role == Role::Tool) {
        result.name.iter_mut().for_each(shorten_name);
    }
    for choice in request.tool_choice.iter_mut().chain(&mut request.asked_tool_choice) {
        shorten_at(choice, "/function/name");
        let listed = choice.pointer_mut("/allowed_tools/tools").and_then(Value::as_array_mut);
        listed.into_iter().flatten().for_each(|tool| shorten_at(tool, "/function/name"));
    }
    for name in &mut request.withheld_tools {
        *name = short_tool_name(name).into();
    }
    request
}

fn shorten_at(value: &mut Value, place: &str) {
    if let Some(Value::String(name)) = value.pointer_mut(place) {
        shorten_name(name);
    }
}

fn shorten_name(name: &mut String) {
    if let Cow::Owned(short) = short_tool_name(name) {
        *name = short;
    }
}

/// A reader of answers to a request with short names.
#[derive(Debug)]
pub(super) struct OwnNameReader<R> {
    /// What reads the answer.
    pub(super) reader: R,
    /// The names that were shortened.
    pub(super) names: ShortToolNames,
}

impl<R: EventReader> EventReader for OwnNameReader<R> {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let read = self.reader.read(data, pieces);
        pieces.iter_mut().for_each(|piece| self.names.restore(piece));
        read
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let closed = self.reader.close(pieces);
        pieces.iter_mut().for_each(|piece| self.names.restore(piece));
        closed
    }

    fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use stint_types::chat::{Message, Role, Tool, ToolCall};

    #[test]
    fn a_request_names_each_tool_alike_wherever_it_does() {
        let long = "mcp__server__".repeat(8);
        let short = short_tool_name(&long).into_owned();
        let named = |name: &str| json!({"type": "function", "function": {"name": name}});
        let request = |name: &str| {
            let call = ToolCall { id: "a".into(), name: name.into(), arguments: "{}".into() };
            let turn = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") };
            let declared = |name: &str| Tool::new(name, named(name));
            let list = json!({"mode": "auto", "tools": [named(name), named("look")]});
            Request {
                tools: vec![declared(name), declared("look")],
                tool_choice: Some(named(name)),
                asked_tool_choice: Some(json!({"type": "allowed_tools", "allowed_tools": list})),
                withheld_tools: vec![name.into()],
                ..Request::new("m", vec![turn])
            }
        };
        assert_eq!(shorten(&request(&long)), request(&short));
        let names = ShortToolNames::of(&request(&long));
        assert_eq!(names, ShortToolNames([(short, long)].into()));
        assert!(ShortToolNames::of(&request("look")).is_empty());
    }
}
