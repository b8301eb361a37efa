//! Tells the tool calls of a stream apart. Some servers do not number them, give all of them the number 0, or name them alike; and
//! some send a tool's name in several pieces.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use crate::remote::call_ids::CallIds;
use crate::{BackendCall, Piece};
use stint_types::chat::{ToolCallDelta, ToolCallExtra, is_complete_json};

use super::chunk::OpenAiCallDelta;

/// The tool calls of one answer, numbered in the order in which they begin.
#[derive(Debug)]
pub(super) struct StreamedCalls {
    ids: CallIds,
    /// The names of the tools that the upstream was told of.
    tools: Vec<String>,
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
    /// What its first piece had, if all of its arguments were in that.
    whole: Option<WholeCall>,
    /// What may be only the beginning of its tool's name: nothing of it was passed on yet.
    held_name: Option<String>,
}

/// A call that came in one piece, with which it is known again: some have all calls in their last chunk once more.
#[derive(Debug)]
struct WholeCall {
    name: Option<String>,
    arguments: String,
}

/// A piece of a call: what is empty says nothing.
struct StreamedCallPiece {
    number: Option<u32>,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl StreamedCalls {
    /// None has begun; the answer is one to this call.
    pub(super) fn new(call: &BackendCall) -> StreamedCalls {
        let tools = call.request.tools.iter().map(|tool| tool.name.clone()).collect();
        StreamedCalls { ids: CallIds::new(call), tools, calls: Vec::new(), numbered: HashMap::new() }
    }

    /// True until a call has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// More of a call, or the beginning of one, as far as it can be passed on. The id goes with the first piece alone, and the name
    /// whole with the first that has one.
    pub(super) fn read(&mut self, mut delta: OpenAiCallDelta<'_>, pieces: &mut VecDeque<Piece>) {
        let extra_content = delta.extra_content.take();
        let at = self.place(StreamedCallPiece::new(delta), pieces);
        if let (Value::Object(extra_content), Some(call)) = (extra_content, self.calls.get_mut(at)) {
            call.extra_content = Some(extra_content);
        }
    }

    /// Passes on a call whose name was held back: no more of it comes.
    pub(super) fn release(&mut self, pieces: &mut VecDeque<Piece>) {
        // What begins later releases it, so it is the last.
        let Some(at) = self.calls.len().checked_sub(1) else { return };
        if let Some(name) = self.calls[at].held_name.take() {
            let id = Some(self.calls[at].unique_id.clone());
            pieces.push_back(piece(at, id, Some(name), String::new()));
        }
    }

    /// What the provider wants back with the calls, now that no more comes.
    pub(super) fn take_extras(&mut self) -> impl Iterator<Item = ToolCallExtra> {
        self.calls.iter_mut().enumerate().filter_map(|(at, call)| {
            let extra_content = call.extra_content.take()?;
            Some(ToolCallExtra { tool_call_id: call.unique_id.clone(), index: index(at), extra_content })
        })
    }

    /// Returns which call it belongs to.
    fn place(&mut self, new: StreamedCallPiece, pieces: &mut VecDeque<Piece>) -> usize {
        let latest = match new.number {
            Some(number) => self.numbered.get(&number).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let Some((at, call)) = latest.and_then(|at| Some((at, self.calls.get_mut(at)?))) else {
            return self.begin(new, pieces);
        };
        if new.repeats(call) {
            return at;
        }
        if let Some(held) = &call.held_name
            && let Some(name) = new.continued_name(call, held, &self.tools)
        {
            call.held_name = None;
            self.name_call(at, name, new.arguments, pieces);
        } else if new.begins_after(call) {
            return self.begin(new, pieces);
        } else if let Some(name) = call.held_name.take() {
            self.name_call(at, name, new.arguments, pieces);
        } else {
            let name = new.name.filter(|_| !std::mem::replace(&mut call.is_named, true));
            pieces.push_back(piece(at, None, name, new.arguments));
        }
        at
    }

    fn begin(&mut self, new: StreamedCallPiece, pieces: &mut VecDeque<Piece>) -> usize {
        self.release(pieces);
        let StreamedCallPiece { number, id, name, arguments } = new;
        let at = self.calls.len();
        self.numbered.extend(number.map(|number| (number, at)));
        let is_whole = arguments.starts_with('{') && is_complete_json(&arguments);
        let whole = is_whole.then(|| WholeCall { name: name.clone(), arguments: arguments.clone() });
        let unique_id = self.ids.unique(id.clone());
        self.calls.push(BegunCall {
            id,
            unique_id: unique_id.clone(),
            extra_content: None,
            is_named: name.is_some(),
            whole,
            held_name: None,
        });
        match name {
            Some(name) => self.name_call(at, name, arguments, pieces),
            None => pieces.push_back(piece(at, Some(unique_id), None, arguments)),
        }
        at
    }

    /// Passes on the beginning of a call with its name, unless there are no arguments yet and a tool's name begins so: then more of
    /// the name may come.
    fn name_call(&mut self, at: usize, name: String, arguments: String, pieces: &mut VecDeque<Piece>) {
        let is_longer = |tool: &String| tool.len() > name.len() && tool.starts_with(&name);
        let call = &mut self.calls[at];
        if arguments.is_empty() && self.tools.iter().any(is_longer) {
            call.held_name = Some(name);
        } else {
            pieces.push_back(piece(at, Some(call.unique_id.clone()), Some(name), arguments));
        }
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

    /// The held name of a call with what this piece adds to it; none where that makes no tool's name or its beginning, as where the
    /// name is repeated.
    fn continued_name(&self, call: &BegunCall, held: &str, tools: &[String]) -> Option<String> {
        let has_other_id = self.id.is_some() && self.id != call.id;
        let name = format!("{held}{}", self.name.as_ref().filter(|_| !has_other_id)?);
        tools.iter().any(|tool| tool.starts_with(&name)).then_some(name)
    }

    /// True if this is the call again, and nothing new.
    fn repeats(&self, call: &BegunCall) -> bool {
        let has_same_id = self.id.is_some() && self.id == call.id;
        let whole = call.whole.as_ref().filter(|_| has_same_id);
        whole.is_some_and(|whole| (&whole.name, &whole.arguments) == (&self.name, &self.arguments))
    }

    /// True if this is a call of its own, and no more of the one that has its number. Some repeat the id and the name in every
    /// piece, and some make up an id for each; but what begins has a name, and nothing goes on from whole arguments.
    fn begins_after(&self, call: &BegunCall) -> bool {
        let has_other_id = self.id.is_some() && self.id != call.id;
        match (&self.name, self.number) {
            (Some(_), _) if call.whole.is_some() && !self.arguments.is_empty() => true,
            (Some(_), None) => has_other_id || (call.is_named && self.id.is_none()),
            (Some(_), Some(_)) => call.is_named && has_other_id,
            (None, None) => has_other_id,
            (None, Some(_)) => false,
        }
    }
}

fn piece(at: usize, id: Option<String>, name: Option<String>, arguments: String) -> Piece {
    Piece::ToolCall(ToolCallDelta { index: index(at), id, name, arguments })
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
