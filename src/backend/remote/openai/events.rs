//! The chunks of a stream as our pieces.

use std::collections::VecDeque;

use serde_json::Value;

use super::chunk::{CallDelta, Choice, Chunk};
use super::details::Details;
use super::dialect::{Resume, ThoughtsBack};
use super::opening::{Beginning, Opening};
use super::usage::{Counter, Shown};
use super::{Settings, request};
use crate::backend::remote::refusal;
use crate::backend::{Call, Edge, Ending, Failure, Fault, Part, Piece};
use crate::chat::{Maker, ToolCallDelta};
use crate::prompt::tags::{Span, Splitter};
use crate::units::Tokens;

/// Reads one stream of chunks.
#[derive(Debug)]
pub(super) struct Reader {
    splitter: Splitter,
    /// Where the template opens a thought.
    beginning: Option<Beginning>,
    /// True where a closed thought was gone on from in the content: what is taken for a thought there is none.
    answers_only: bool,
    ending: Option<Ending>,
    counter: Counter,
    shown: Shown,
    /// The tool call that a piece without an index belongs to.
    call: Option<u32>,
    details: Option<(Maker, Details)>,
    /// The chances of tokens whose text was not shown yet; nothing where nobody asked for them.
    logprobs: Option<Vec<Value>>,
}

impl Reader {
    pub(super) fn new(settings: &Settings, call: &Call, opening: &Opening) -> Reader {
        let Settings { start_tag, end_tag, dialect, .. } = settings;
        let (start, end) = (start_tag.as_str(), end_tag.as_str());
        let resumes = request::resumes(settings, call);
        let thinks = match &call.part {
            Part::Solution { .. } => false,
            Part::Whole { thinking, .. } => *thinking > Tokens::ZERO,
            Part::Thought { .. } | Part::Total { .. } => true,
        };
        let opens = settings.starts_in_thinking && thinks && !resumes;
        let beginning = opens.then(|| Beginning::new(opening, end));
        let splitter = if resumes {
            Splitter::after_thought(start, end)
        } else {
            Splitter::new(start, end, beginning.as_ref().is_some_and(|beginning| beginning.is_open))
        };
        let keeps = dialect.thoughts_back == ThoughtsBack::Details;
        Reader {
            splitter,
            beginning,
            answers_only: resumes && dialect.resume == Resume::FinalMessage,
            ending: None,
            counter: Counter::default(),
            shown: Shown::default(),
            call: None,
            details: keeps.then(|| (settings.maker(), Details::default())),
            logprobs: call.request.logprobs.map(|_| Vec::new()),
        }
    }

    fn choice(&mut self, choice: Choice, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let tokens = Tokens(choice.tokens());
        let delta = choice.delta.unwrap_or_default();
        let text = delta.thought();
        if !text.is_empty() {
            if self.answers_only {
                self.content(&Value::String(text), pieces);
            } else {
                self.thinks_apart();
                pieces.push_back(thought(text));
            }
        }
        if let Some((_, details)) = &mut self.details {
            details.push(delta.reasoning_details);
        }
        self.content(&delta.content, pieces);
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            pieces.push_back(answer(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            pieces.push_back(Piece::ToolCall(self.tool_call(call)));
        }
        count(tokens, pieces);
        if let Some(word) = choice.finish_reason {
            self.ending = Some(ending(&word)?);
        }
        Ok(())
    }

    /// A string, or a list of parts as Mistral sends it.
    fn content(&mut self, content: &Value, pieces: &mut VecDeque<Piece>) {
        match content {
            Value::String(text) => {
                let spans = self.splitter.push(text);
                self.note(&spans);
                pieces.extend(spans.into_iter().map(piece));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part, pieces)),
            _ => {}
        }
    }

    fn part(&mut self, part: &Value, pieces: &mut VecDeque<Piece>) {
        if let Some(parts) = part.get("thinking").and_then(Value::as_array) {
            self.thinks_apart();
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            pieces.extend(texts.map(|text| thought(text.to_owned())));
        } else if let Some(text) = part.get("text") {
            self.content(text, pieces);
        }
    }

    /// A thought comes by another way than the text.
    fn thinks_apart(&mut self) {
        self.splitter.plain();
        self.beginning.iter_mut().for_each(Beginning::comes_apart);
    }

    /// Looks at what the text turned out to be.
    fn note(&mut self, spans: &[Span]) {
        let Some(beginning) = &mut self.beginning else { return };
        for span in spans {
            match span {
                Span::End => beginning.closes(),
                Span::Answer(text) => beginning.answers(text),
                Span::Start | Span::Thought(_) => {}
            }
        }
    }

    fn tool_call(&mut self, call: CallDelta) -> ToolCallDelta {
        let begins = call.id.as_ref().is_some_and(|id| !id.is_empty());
        let next = match (self.call, begins) {
            (Some(last), false) => last,
            (Some(last), true) => last + 1,
            (None, _) => 0,
        };
        let index = call.index.unwrap_or(next);
        self.call = Some(index);
        let function = call.function.unwrap_or_default();
        let present = |text: &String| !text.is_empty();
        let arguments = match function.arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            object => object.to_string(),
        };
        ToolCallDelta { index, id: call.id.filter(present), name: function.name.filter(present), arguments }
    }

    /// Looks at what a chunk has brought, so that a count in the middle can be told apart.
    fn look<'p>(&mut self, pieces: impl Iterator<Item = &'p Piece>) {
        self.shown.thinks = false;
        for piece in pieces {
            match piece {
                Piece::Thought { .. } => (self.shown.thinks, self.shown.thought) = (true, true),
                Piece::Answer { .. } | Piece::ToolCall(_) => self.shown.answer = true,
                _ => {}
            }
        }
    }

    /// Puts the chances of tokens before the answer's text that is made of them. Those of a thought are dropped; those of text
    /// that is held back, as it may be a tag, wait for it.
    fn tell(&mut self, entries: Vec<Value>, pieces: &mut VecDeque<Piece>) {
        let Some(waiting) = &mut self.logprobs else { return };
        waiting.extend(entries);
        let says = |piece: &Piece| matches!(piece, Piece::Answer { .. });
        if let Some(at) = pieces.iter().position(says) {
            let entries = std::mem::take(waiting);
            if !entries.is_empty() {
                pieces.insert(at, Piece::Logprobs(entries));
            }
        } else if pieces.iter().any(is_no_answer) {
            waiting.clear();
        }
    }

    fn end(&mut self, ending: Ending, pieces: &mut VecDeque<Piece>) {
        let mut last: VecDeque<Piece> = self.splitter.finish().into_iter().map(piece).collect();
        self.tell(Vec::new(), &mut last);
        pieces.append(&mut last);
        let (stops, told) = (matches!(ending, Ending::Stop { .. }), self.counter.told());
        if self.beginning.as_mut().is_some_and(|beginning| beginning.ends(stops, told.map(|told| told.0))) {
            pieces.push_back(Piece::Unthought);
            pieces.extend(self.counter.unthought().map(Piece::Usage));
        }
        if let Some((maker, details)) = &mut self.details {
            pieces.extend(details.signed(maker).map(Piece::Signed));
        }
        pieces.push_back(Piece::End(ending));
    }
}

impl crate::backend::remote::Reader for Reader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if data == b"[DONE]" {
            let unsaid = if self.call.is_some() { Ending::ToolCalls } else { stop() };
            self.end(self.ending.unwrap_or(unsaid), pieces);
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let Chunk { choices, usage, timings, error } = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no chunk"))?;
        if !error.is_null() {
            return Err(refusal::of_event(&error));
        }
        let mut new = VecDeque::new();
        let mut inner = Value::Null;
        for mut choice in choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            inner = choice.usage.take();
            let entries = choice.take_logprobs();
            self.choice(choice, &mut new)?;
            self.tell(entries, &mut new);
        }
        self.look(new.iter());
        pieces.append(&mut new);
        let usage = if usage.is_null() { &inner } else { &usage };
        pieces.extend(self.counter.read(usage, &timings, self.shown).map(Piece::Usage));
        Ok(())
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        self.end(ending, pieces);
        Ok(())
    }
}

/// Shares a chunk's tokens among its texts by their length. Those that show nothing are tags, or the end of the text.
fn count(tokens: Tokens, pieces: &mut VecDeque<Piece>) {
    if tokens == Tokens::ZERO {
        return;
    }
    let length = |piece: &Piece| match piece {
        Piece::Thought { text, .. } | Piece::Answer { text, .. } => text.len() as u64,
        Piece::ToolCall(call) => call.arguments.len() as u64,
        _ => 0,
    };
    let all: u64 = pieces.iter().map(length).sum();
    let (mut seen, mut given) = (0, 0);
    for piece in pieces.iter_mut() {
        seen += length(piece);
        let share = (tokens.0 * seen).checked_div(all).unwrap_or(0).saturating_sub(given);
        if let Piece::Thought { tokens, .. } | Piece::Answer { tokens, .. } = piece {
            *tokens = Tokens(share);
            given += share;
        }
    }
    let rest = Tokens(tokens.0.saturating_sub(given));
    pieces.extend((rest > Tokens::ZERO).then_some(Piece::Tag { tokens: rest, edge: Edge::Start }));
}

/// True for what ends the waiting for an answer's text: a thought, a call, or a tag that was split off.
fn is_no_answer(piece: &Piece) -> bool {
    matches!(piece, Piece::Thought { .. } | Piece::ToolCall(_) | Piece::Tag { tokens: Tokens::ZERO, .. })
}

pub(super) fn ending(word: &str) -> Result<Ending, Failure> {
    match word {
        "length" | "max_tokens" => Ok(Ending::Limit),
        "tool_calls" | "function_call" => Ok(Ending::ToolCalls),
        "content_filter" => Ok(Ending::Filtered),
        "error" => Err(Failure::new(Fault::Backend, "the upstream gave up")),
        _ => Ok(stop()),
    }
}

/// Whether the end-of-text token is counted, these upstreams do not say.
pub(super) fn stop() -> Ending {
    Ending::Stop { tokens: Tokens::ZERO }
}

fn piece(span: Span) -> Piece {
    match span {
        Span::Thought(text) => thought(text),
        Span::Answer(text) => answer(text),
        Span::Start => Piece::Tag { tokens: Tokens::ZERO, edge: Edge::Start },
        Span::End => Piece::Tag { tokens: Tokens::ZERO, edge: Edge::End },
    }
}

fn thought(text: String) -> Piece {
    Piece::Thought { text, tokens: Tokens::ZERO, ids: Vec::new() }
}

fn answer(text: String) -> Piece {
    Piece::Answer { text, tokens: Tokens::ZERO }
}
