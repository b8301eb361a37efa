//! Translates llama.cpp's events to pieces.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use crate::remote::answer_end::is_done;
use crate::remote::refusal;
use crate::{Failure, Fault, GenerationEnd, Piece, TagEdge, TokenUsage};
use stint_prompt::tags::{Splitter, TaggedSpan};
use stint_types::units::Tokens;

/// Reads the stream of one phase.
#[derive(Debug)]
pub(super) struct LlamaCppReader {
    phase: LlamaCppPhase,
    /// Tokens that came without text: inside a character, at what may become the tag, or the last one of all,
    /// of which only the final event says what it was.
    held: Vec<u32>,
    /// The length of the prompt was reported.
    is_prompt_reported: bool,
    is_finished: bool,
}

#[derive(Debug)]
enum LlamaCppPhase {
    /// Closed by this token, where it is one.
    Thought(Option<u32>),
    /// With tags to be left out, where they could not be banned.
    Solution(Option<Splitter>),
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct LlamaCppEvent {
    content: String,
    tokens: Vec<u32>,
    stop: bool,
    stop_type: String,
    truncated: bool,
    tokens_predicted: Value,
    tokens_evaluated: Value,
    error: Value,
}

impl LlamaCppEvent {
    /// How long the prompt is; nothing where that is no number of tokens.
    fn prompt(&self) -> Option<Tokens> {
        token_count(&self.tokens_evaluated)
    }

    /// What was read and written; nothing where either is no number of tokens.
    fn usage(&self) -> Option<TokenUsage> {
        let (prompt, completion) = (self.prompt()?, token_count(&self.tokens_predicted)?);
        Some(TokenUsage { prompt, completion, ..TokenUsage::default() })
    }
}

/// A count; none where nothing is said.
fn token_count(said: &Value) -> Option<Tokens> {
    if said.is_null() { Some(Tokens::ZERO) } else { said.as_u64().map(Tokens) }
}

impl LlamaCppReader {
    /// A reader of the first phase.
    pub(super) fn thought(end: Option<u32>) -> LlamaCppReader {
        LlamaCppReader::new(LlamaCppPhase::Thought(end))
    }

    /// A reader of the second phase. What a splitter takes for a tag, or for a thought that was begun again, is
    /// left out; it counts as answer all the same, so that it eats the answer's budget and no other.
    pub(super) fn solution(splitter: Option<Splitter>) -> LlamaCppReader {
        LlamaCppReader::new(LlamaCppPhase::Solution(splitter))
    }

    fn new(phase: LlamaCppPhase) -> LlamaCppReader {
        LlamaCppReader { phase, held: Vec::new(), is_prompt_reported: false, is_finished: false }
    }

    /// Reports the prompt's length as soon as the server does, so that it is known if the caller leaves in the middle.
    fn report_prompt(&mut self, event: &LlamaCppEvent, pieces: &mut VecDeque<Piece>) {
        let prompt = event.prompt().filter(|prompt| *prompt > Tokens::ZERO && !event.stop);
        if let Some(prompt) = prompt.filter(|_| !self.is_prompt_reported) {
            self.is_prompt_reported = true;
            pieces.push_back(Piece::Usage(TokenUsage { prompt, ..TokenUsage::default() }));
        }
    }

    fn text(&mut self, text: String, pieces: &mut VecDeque<Piece>) {
        // Text that looked like the tag may come out together with the tag itself, which is not part of it.
        let end =
            self.held.pop_if(|id| matches!(self.phase, LlamaCppPhase::Thought(Some(end)) if *id == end));
        let ids = std::mem::replace(&mut self.held, end.into_iter().collect());
        if ids.is_empty() && text.is_empty() {
            return;
        }
        let tokens = count(&ids);
        pieces.push_back(match &mut self.phase {
            LlamaCppPhase::Thought(_) => Piece::Thought { text, tokens, ids },
            LlamaCppPhase::Solution(splitter) => {
                Piece::Answer { text: visible_text(splitter.as_mut(), text), tokens }
            }
        });
    }

    fn finish(&mut self, event: &LlamaCppEvent, pieces: &mut VecDeque<Piece>) {
        let ending = match event.stop_type.as_str() {
            _ if event.truncated => GenerationEnd::ModelLimit,
            "limit" => GenerationEnd::Limit,
            "word" => {
                let tag = std::mem::take(&mut self.held);
                pieces.push_back(Piece::Tag { tokens: count(&tag), edge: TagEdge::End });
                GenerationEnd::Stop { tokens: Tokens::ZERO }
            }
            _ => GenerationEnd::Stop { tokens: self.held.pop().map_or(Tokens::ZERO, |_| Tokens(1)) },
        };
        self.text(String::new(), pieces);
        if let LlamaCppPhase::Solution(Some(splitter)) = &mut self.phase {
            let rest = answer_text(splitter.finish());
            pieces.extend((!rest.is_empty()).then_some(Piece::Answer { text: rest, tokens: Tokens::ZERO }));
        }
        pieces.extend(event.usage().map(Piece::Usage));
        pieces.push_back(Piece::End(ending));
        self.is_finished = true;
    }
}

impl crate::remote::EventReader for LlamaCppReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if self.is_finished || is_done(data) {
            return Ok(());
        }
        let event: LlamaCppEvent = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the server sent an event that is no completion"))?;
        if !event.error.is_null() {
            return Err(refusal::of_event(&event.error));
        }
        self.report_prompt(&event, pieces);
        self.held.extend(&event.tokens);
        if !event.content.is_empty() {
            self.text(event.content.clone(), pieces);
        }
        if event.stop {
            self.finish(&event, pieces);
        }
        Ok(())
    }

    fn close(&mut self, _: &mut VecDeque<Piece>) -> Result<(), Failure> {
        Err(refusal::truncated())
    }

    /// Its last event ends it.
    fn is_complete(&self) -> bool {
        false
    }
}

/// What of the text is to be shown.
fn visible_text(splitter: Option<&mut Splitter>, text: String) -> String {
    match splitter {
        Some(splitter) => answer_text(splitter.push(&text)),
        None => text,
    }
}

fn answer_text(spans: Vec<TaggedSpan>) -> String {
    let answer = |span| if let TaggedSpan::Answer(text) = span { Some(text) } else { None };
    spans.into_iter().filter_map(answer).collect()
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}
