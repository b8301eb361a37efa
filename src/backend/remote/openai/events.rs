//! OpenAI's chunks as our pieces.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::Settings;
use crate::backend::remote::refusal;
use crate::backend::{Edge, Ending, Failure, Fault, Piece, Usage};
use crate::chat::ToolCallDelta;
use crate::prompt::tags::{Span, Splitter};
use crate::units::Tokens;

/// Reads one stream of chunks.
#[derive(Debug)]
pub(super) struct Reader {
    splitter: Splitter,
    ending: Option<Ending>,
    counts: Counts,
    /// The tool call that a piece without an index belongs to.
    call: Option<u32>,
}

/// What an upstream has said of its own counts. They only grow, so one that is smaller than what was said before is
/// not believed.
#[derive(Debug, Default)]
pub(super) struct Counts(Option<Usage>);

impl Counts {
    /// The usage of an event, where it is news.
    pub(super) fn read(&mut self, usage: &Value) -> Option<Usage> {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).map(Tokens);
        let prompt = number(usage.get("prompt_tokens"))?;
        let completion = number(usage.get("completion_tokens"))?;
        let cached = number(usage.pointer("/prompt_tokens_details/cached_tokens"));
        let written = number(usage.pointer("/prompt_tokens_details/cache_write_tokens"));
        let usage = Usage {
            prompt,
            cache_read: cached.or(number(usage.get("prompt_cache_hit_tokens"))).unwrap_or_default(),
            cache_write: written.unwrap_or_default(),
            completion,
            thinking: number(usage.pointer("/completion_tokens_details/reasoning_tokens")),
        };
        let is_news = self.0.is_none_or(|last| completion >= last.completion && last != usage);
        is_news.then(|| *self.0.insert(usage))
    }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    /// Read leniently: a usage that makes no sense is no reason to lose the answer.
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Value,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Value,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u32>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

impl Reader {
    pub(super) fn new(settings: &Settings) -> Reader {
        let Settings { start_tag, end_tag, starts_in_thinking, .. } = settings;
        let splitter = Splitter::new(start_tag.as_str(), end_tag.as_str(), *starts_in_thinking);
        Reader { splitter, ending: None, counts: Counts::default(), call: None }
    }

    fn choice(&mut self, choice: Choice, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let delta = choice.delta.unwrap_or_default();
        let thought = delta.reasoning_content.or_else(|| delta.reasoning.as_str().map(str::to_owned));
        if let Some(text) = thought.filter(|text| !text.is_empty()) {
            self.splitter.plain();
            pieces.push_back(self::thought(text));
        }
        self.content(&delta.content, pieces);
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            pieces.push_back(answer(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            pieces.push_back(Piece::ToolCall(self.tool_call(call)));
        }
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
                pieces.extend(spans.into_iter().map(piece));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part, pieces)),
            _ => {}
        }
    }

    fn part(&mut self, part: &Value, pieces: &mut VecDeque<Piece>) {
        if let Some(parts) = part.get("thinking").and_then(Value::as_array) {
            self.splitter.plain();
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            pieces.extend(texts.map(|text| thought(text.to_owned())));
        } else if let Some(text) = part.get("text") {
            self.content(text, pieces);
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
        ToolCallDelta {
            index,
            id: call.id.filter(present),
            name: function.name.filter(present),
            arguments: function.arguments.unwrap_or_default(),
        }
    }

    fn end(&mut self, ending: Ending, pieces: &mut VecDeque<Piece>) {
        pieces.extend(self.splitter.finish().into_iter().map(piece));
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
        let chunk: Chunk = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no chunk"))?;
        if !chunk.error.is_null() {
            return Err(refusal::of_event(&chunk.error));
        }
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            self.choice(choice, pieces)?;
        }
        pieces.extend(self.counts.read(&chunk.usage).map(Piece::Usage));
        Ok(())
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        self.end(ending, pieces);
        Ok(())
    }
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
