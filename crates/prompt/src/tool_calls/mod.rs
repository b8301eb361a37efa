//! Tool calls that a model writes into its text, one syntax per family of models.
//!
//! Servers read them out for chat requests. Where an answer is resumed from a closed thought there is no chat request, so
//! they are read here: the caller sees the calls and never their syntax. A call is told whole, once its end is there: half
//! a call is of no use, and one that a limit breaks off is left out.

mod coder;
mod declared_tools;
mod deepseek;
mod frame;
mod harmony;
mod json;
mod mistral;
mod syntax;
mod tool_names;

use std::borrow::Cow;

use stint_types::chat::{Tool, ToolCallDelta};

pub use frame::CallFrame;
pub use syntax::ToolCallSyntax;

use declared_tools::DeclaredTools;
use json::{StringScanner, WrittenCall};

/// What a text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerSegment {
    /// Part of the answer.
    Text(String),
    /// A whole call.
    Call(ToolCallDelta),
}

/// So much blank, in bytes, may be held back because a call may follow: some models write blank until a limit ends them.
const BLANK_HELD_MAX: usize = 256;

/// Reads calls out of an answer that arrives in pieces, wherever the pieces are cut.
#[derive(Debug, Clone)]
pub struct ToolCallParser {
    syntax: ToolCallSyntax,
    /// What the ids of the calls begin with.
    id: String,
    count: u32,
    state: CallParserState,
    /// The text that may be a call or the beginning of a tag, or blank that may stand beside a call.
    buffer: String,
    /// So many bytes of it hold no end of a call.
    searched: usize,
    /// Whether a tag in it stands inside a string.
    strings: StringScanner,
    /// The blank before what may be a call.
    blank: String,
    /// What a call may begin with.
    starts: Vec<Cow<'static, str>>,
    /// The tag that opened what may be a call.
    opened: Cow<'static, str>,
    /// A tag that may follow the last call and is nothing by itself.
    tail: Option<&'static str>,
    /// What is known of the tools.
    tools: DeclaredTools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallParserState {
    /// There was only blank text yet.
    Before,
    /// In the answer.
    Text,
    /// Inside a call.
    Call,
}

impl ToolCallParser {
    /// A reader for one answer. The ids of its calls begin with `id`, which must be of no other answer.
    pub fn new(syntax: ToolCallSyntax, id: impl Into<String>) -> ToolCallParser {
        ToolCallParser {
            syntax,
            id: id.into(),
            count: 0,
            state: CallParserState::Before,
            buffer: String::new(),
            searched: 0,
            strings: StringScanner::default(),
            blank: String::new(),
            starts: syntax.starts(&[]),
            opened: Cow::default(),
            tail: None,
            tools: DeclaredTools::default(),
        }
    }

    /// The same, knowing these tools. Some families write every argument as it is, and only its declaration tells the number 7 from
    /// a text. Llama's calls are told from an answer in JSON by the tool's name.
    #[must_use]
    pub fn with_tools(mut self, tools: &[Tool]) -> ToolCallParser {
        self.tools = self.syntax.declared(tools);
        self.starts = self.syntax.starts(tools);
        self
    }

    /// True once there was a call.
    pub fn has_calls(&self) -> bool {
        self.count > 0
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<AnswerSegment> {
        self.buffer.push_str(text);
        let mut said = Vec::new();
        while self.step(&mut said) {}
        said
    }

    /// A limit ended the text. What may be the beginning of a call or of its tag is taken for one that broke off, and left out; the
    /// whole calls before it are calls. One character alone is taken for text: it is more often a comparison or a bracket.
    pub fn finish_cut(&mut self) -> Vec<AnswerSegment> {
        let begun = self.tag_begun();
        let is_tag = self.buffer[self.buffer.len() - begun..].chars().nth(1).is_some();
        if self.state == CallParserState::Call {
            if self.syntax.is_cut_at_limit(&self.buffer) {
                self.state = CallParserState::Text;
                let text = std::mem::take(&mut self.buffer);
                return self.leading_calls(&text);
            }
        } else if is_tag {
            self.buffer.truncate(self.buffer.len() - begun);
            self.buffer.truncate(self.buffer.trim_end().len());
        }
        self.finish()
    }

    /// The text has ended, and a call may end with it. What was held back and is no call is text after all, unless it is one that
    /// broke off.
    pub fn finish(&mut self) -> Vec<AnswerSegment> {
        let mut said = Vec::new();
        let rest = std::mem::take(&mut self.buffer);
        if self.state == CallParserState::Call {
            // The end tag may have begun.
            let begun = self.syntax.end(&self.opened).map_or(0, |end| overlap(&rest, end));
            let (text, end) = rest.split_at(rest.len() - begun);
            self.close(text, end, &mut said);
        } else {
            let broke_off = self.tail.take().is_some_and(|tail| tail.starts_with(rest.trim()));
            if !(self.has_calls() && (broke_off || rest.trim().is_empty())) {
                self.emit(rest, &mut said);
            }
        }
        said
    }
}

impl ToolCallParser {
    /// Takes one tag out of the held text; false if there is none to take.
    fn step(&mut self, said: &mut Vec<AnswerSegment>) -> bool {
        match self.state {
            CallParserState::Before | CallParserState::Text => match self.tail {
                Some(tail) => self.skip_tail(tail),
                None => self.open(said),
            },
            CallParserState::Call => {
                match self.syntax.end(&self.opened).and_then(|end| Some((self.find_end(end)?, end))) {
                    Some((at, end)) => {
                        let rest = self.buffer.split_off(at + end.len());
                        let whole = std::mem::replace(&mut self.buffer, rest);
                        let is_call = self.close(&whole[..at], end, said);
                        self.state = CallParserState::Text;
                        self.tail = self.syntax.tail(&self.opened).filter(|_| is_call);
                        true
                    }
                    None => false,
                }
            }
        }
    }

    /// Where a call's end is. What was searched before is not searched again, however many pieces a call has; a tag may have begun
    /// there. What stands inside a string is no end.
    fn find_end(&mut self, end: &str) -> Option<usize> {
        loop {
            let from = self.buffer.floor_char_boundary(self.searched.saturating_sub(end.len()));
            let Some(at) = self.buffer[from..].find(end).map(|at| from + at) else {
                self.searched = self.buffer.len();
                return None;
            };
            let before = &self.buffer[..at];
            if !(self.syntax.may_quote_end(before) && self.strings.ends_inside(before)) {
                self.searched = 0;
                self.strings = StringScanner::default();
                return Some(at);
            }
            // The next search begins one byte behind this tag's first.
            self.searched = at + end.len() + 1;
        }
    }

    /// Passes over a tag that belongs to the call before it, where it comes next; false while that is not known.
    fn skip_tail(&mut self, tail: &'static str) -> bool {
        let next = self.buffer.trim_start();
        let is_near = self.buffer.len() - next.len() <= BLANK_HELD_MAX;
        if is_near && next.len() < tail.len() && tail.starts_with(next) {
            return false;
        }
        if let Some(rest) = next.strip_prefix(tail).filter(|_| is_near) {
            self.buffer = rest.to_owned();
        }
        self.tail = None;
        true
    }

    /// Looks for the beginning of a call. Llama's has no tag, so it can only be the whole answer.
    fn open(&mut self, said: &mut Vec<AnswerSegment>) -> bool {
        let starts = &self.starts;
        let found = match self.syntax {
            ToolCallSyntax::Llama if self.state == CallParserState::Text => None,
            ToolCallSyntax::Llama => {
                self.buffer.trim_start().starts_with('{').then(|| self.buffer.find('{')).flatten()
            }
            _ => None,
        };
        let found = match self.syntax {
            ToolCallSyntax::Llama => found.map(|at| (at, Cow::default())),
            _ => starts.iter().filter_map(|start| Some((self.buffer.find(&**start)?, start.clone()))).min(),
        };
        let Some((at, tag)) = found else {
            // Blank before a call is no part of the answer, and whether one follows is not known yet.
            let sure = &self.buffer[..self.buffer.len() - self.tag_begun()];
            let rest = self.buffer.split_off(held_from(sure));
            let text = std::mem::replace(&mut self.buffer, rest);
            self.emit(text, said);
            return false;
        };
        let rest = self.buffer.split_off(at + tag.len());
        let mut before = std::mem::replace(&mut self.buffer, rest);
        before.truncate(at);
        self.blank = before.split_off(held_from(&before));
        self.opened = tag;
        self.emit(before, said);
        self.state = CallParserState::Call;
        true
    }

    /// How many bytes at the end of what is held may be the beginning of a call's tag.
    fn tag_begun(&self) -> usize {
        self.starts.iter().map(|start| overlap(&self.buffer, start)).max().unwrap_or(0)
    }

    /// What stood between a start and an end, of which there is nothing or a beginning if the text has ended: calls, or text that
    /// only looked like one. What broke off is left out. True if it was calls.
    fn close(&mut self, text: &str, end: &str, said: &mut Vec<AnswerSegment>) -> bool {
        let is_whole = self.syntax.end(&self.opened) == Some(end);
        let may_be_call = is_whole || self.syntax.ends_with_text(&self.opened);
        let calls = || self.syntax.read(&self.opened, text.trim(), &self.tools);
        if let Some(calls) = may_be_call.then(calls).flatten() {
            said.extend(calls.into_iter().map(|call| self.call_delta(call)));
            return true;
        }
        let blank = std::mem::take(&mut self.blank);
        if is_whole || !self.syntax.is_truncated(&self.opened, text, &self.tools) {
            self.emit([&*blank, &*self.opened, text, end].concat(), said);
        } else {
            said.extend(self.leading_calls(text));
        }
        false
    }

    /// The whole calls of a text whose last one broke off.
    fn leading_calls(&mut self, text: &str) -> Vec<AnswerSegment> {
        let calls = self.syntax.leading_calls(text.trim(), &self.tools);
        calls.into_iter().map(|call| self.call_delta(call)).collect()
    }

    fn call_delta(&mut self, (name, arguments): WrittenCall) -> AnswerSegment {
        let index = self.count;
        self.count += 1;
        let id = Some(format!("{}_{index}", self.id));
        AnswerSegment::Call(ToolCallDelta { index, id, name: Some(name), arguments })
    }

    fn emit(&mut self, text: String, said: &mut Vec<AnswerSegment>) {
        if !text.is_empty() {
            if !text.trim().is_empty() {
                self.state = CallParserState::Text;
            }
            said.push(AnswerSegment::Text(text));
        }
    }
}

/// Where the blank at the end of a text begins that is no part of the answer if a call follows. What is more than may be held is one.
fn held_from(text: &str) -> usize {
    let most = text.ceil_char_boundary(text.len().saturating_sub(BLANK_HELD_MAX));
    text.trim_end().len().max(most)
}

/// How many bytes at the end of the text may be the beginning of the tag.
fn overlap(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest).rev().find(|&length| text.as_bytes().ends_with(&tag.as_bytes()[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests;
