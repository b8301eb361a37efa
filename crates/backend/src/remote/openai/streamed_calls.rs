//! Tells the tool calls of a stream apart. Some servers do not number them, give all of them the number 0, or name them alike.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::remote::call_ids::CallIds;
use stint_types::chat::{ToolCallDelta, ToolCallExtra, is_complete_json};

use super::chunk::OpenAiCallDelta;

/// The tool calls of one answer, numbered in the order in which they begin.
#[derive(Debug)]
pub(super) struct StreamedCalls {
    ids: CallIds,
    calls: Vec<BegunCall>,
    /// The latest call under each of the upstream's numbers.
    numbered: HashMap<u32, usize>,
}

/// A call that has begun.
#[derive(Debug)]
struct BegunCall {
    /// As the upstream names it.
    id: Option<String>,
    /// As the caller is told.
    unique_id: String,
    /// What its provider wants back with it.
    extra_content: Option<Map<String, Value>>,
    is_named: bool,
    /// True if its first piece had all of its arguments.
    is_whole: bool,
}

/// A piece of a call: what is empty says nothing.
struct StreamedCallPiece {
    number: Option<u32>,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl StreamedCalls {
    /// None has begun; `ids` sees to their ids.
    pub(super) fn new(ids: CallIds) -> StreamedCalls {
        StreamedCalls { ids, calls: Vec::new(), numbered: HashMap::new() }
    }

    /// True until a call has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// More of a call, or the beginning of one. The id goes with the first piece alone, and the name with the first that has one.
    pub(super) fn read(&mut self, mut delta: OpenAiCallDelta<'_>) -> ToolCallDelta {
        let extra_content = delta.extra_content.take();
        let piece = self.place(StreamedCallPiece::new(delta));
        let call = usize::try_from(piece.index).ok().and_then(|at| self.calls.get_mut(at));
        if let (Value::Object(extra_content), Some(call)) = (extra_content, call) {
            call.extra_content = Some(extra_content);
        }
        piece
    }

    /// What the provider wants back with the calls, now that no more comes.
    pub(super) fn take_extras(&mut self) -> impl Iterator<Item = ToolCallExtra> {
        self.calls.iter_mut().enumerate().filter_map(|(at, call)| {
            let extra_content = call.extra_content.take()?;
            Some(ToolCallExtra { tool_call_id: call.unique_id.clone(), index: index(at), extra_content })
        })
    }

    fn place(&mut self, piece: StreamedCallPiece) -> ToolCallDelta {
        let latest = match piece.number {
            Some(number) => self.numbered.get(&number).copied(),
            None => self.calls.len().checked_sub(1),
        };
        match latest.and_then(|at| Some((at, self.calls.get_mut(at)?))) {
            Some((at, call)) if !piece.begins_after(call) => {
                let name = piece.name.filter(|_| !std::mem::replace(&mut call.is_named, true));
                ToolCallDelta { index: index(at), id: None, name, arguments: piece.arguments }
            }
            _ => self.begin(piece),
        }
    }

    fn begin(&mut self, piece: StreamedCallPiece) -> ToolCallDelta {
        let StreamedCallPiece { number, id, name, arguments } = piece;
        let at = self.calls.len();
        self.numbered.extend(number.map(|number| (number, at)));
        let is_whole = arguments.starts_with('{') && is_complete_json(&arguments);
        let unique_id = self.ids.unique(id.clone());
        self.calls.push(BegunCall {
            id,
            unique_id: unique_id.clone(),
            extra_content: None,
            is_named: name.is_some(),
            is_whole,
        });
        ToolCallDelta { index: index(at), id: Some(unique_id), name, arguments }
    }
}

impl StreamedCallPiece {
    fn new(delta: OpenAiCallDelta<'_>) -> StreamedCallPiece {
        let function = delta.function.unwrap_or_default();
        let present = |text: &String| !text.is_empty();
        StreamedCallPiece {
            number: delta.index,
            id: delta.id.filter(present),
            name: function.name.filter(present),
            arguments: function.arguments.into_json_text(),
        }
    }

    /// True if this is a call of its own, and no more of the one that has its number. Some repeat the id and the name in every
    /// piece, and some make up an id for each; but what begins has a name, and nothing goes on from whole arguments.
    fn begins_after(&self, call: &BegunCall) -> bool {
        let has_other_id = self.id.is_some() && self.id != call.id;
        match (&self.name, self.number) {
            (Some(_), _) if call.is_whole && !self.arguments.is_empty() => true,
            (Some(_), None) => has_other_id || (call.is_named && self.id.is_none()),
            (Some(_), Some(_)) => call.is_named && has_other_id,
            (None, None) => has_other_id,
            (None, Some(_)) => false,
        }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
