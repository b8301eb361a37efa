//! llama.cpp's events as our pieces.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use crate::backend::remote::refusal;
use crate::backend::{Edge, Ending, Failure, Fault, Piece, Usage};
use crate::prompt::tags::{Span, Splitter};
use crate::units::Tokens;

/// Reads the stream of one phase.
#[derive(Debug)]
pub(super) struct Reader {
    phase: Phase,
    /// Tokens that came without text: inside a character, at what may become the tag, or the last one of all,
    /// of which only the final event says what it was.
    held: Vec<u32>,
    /// The length of the prompt was told.
    begun: bool,
    over: bool,
}

#[derive(Debug)]
enum Phase {
    /// Closed by this token, where it is one.
    Thought(Option<u32>),
    /// With tags to be left out, where they could not be banned.
    Solution(Option<Splitter>),
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Event {
    content: String,
    tokens: Vec<u32>,
    stop: bool,
    stop_type: String,
    truncated: bool,
    tokens_predicted: u64,
    tokens_evaluated: u64,
    error: Value,
}

impl Reader {
    /// A reader of the first phase.
    pub(super) fn thought(end: Option<u32>) -> Reader {
        Reader::new(Phase::Thought(end))
    }

    /// A reader of the second phase. What a splitter takes for a tag, or for a thought that was begun again, is
    /// left out; it counts as answer all the same, so that it eats the answer's budget and no other.
    pub(super) fn solution(splitter: Option<Splitter>) -> Reader {
        Reader::new(Phase::Solution(splitter))
    }

    fn new(phase: Phase) -> Reader {
        Reader { phase, held: Vec::new(), begun: false, over: false }
    }

    /// Tells how long the prompt is as soon as the server does: whoever leaves in the middle knows it then.
    fn begin(&mut self, event: &Event, pieces: &mut VecDeque<Piece>) {
        if !self.begun && !event.stop && event.tokens_evaluated > 0 {
            self.begun = true;
            let prompt = Tokens(event.tokens_evaluated);
            pieces.push_back(Piece::Usage(Usage { prompt, ..Usage::default() }));
        }
    }

    fn text(&mut self, text: String, pieces: &mut VecDeque<Piece>) {
        // Text that looked like the tag may come out together with the tag itself, which is not part of it.
        let end = self.held.pop_if(|id| matches!(self.phase, Phase::Thought(Some(end)) if *id == end));
        let ids = std::mem::replace(&mut self.held, end.into_iter().collect());
        if ids.is_empty() && text.is_empty() {
            return;
        }
        let tokens = count(&ids);
        pieces.push_back(match &mut self.phase {
            Phase::Thought(_) => Piece::Thought { text, tokens, ids },
            Phase::Solution(splitter) => Piece::Answer { text: answer(splitter.as_mut(), text), tokens },
        });
    }

    fn finish(&mut self, event: &Event, pieces: &mut VecDeque<Piece>) {
        let ending = match event.stop_type.as_str() {
            _ if event.truncated => Ending::Limit,
            "limit" => Ending::Limit,
            "word" => {
                let tag = std::mem::take(&mut self.held);
                pieces.push_back(Piece::Tag { tokens: count(&tag), edge: Edge::End });
                Ending::Stop { tokens: Tokens::ZERO }
            }
            _ => Ending::Stop { tokens: self.held.pop().map_or(Tokens::ZERO, |_| Tokens(1)) },
        };
        self.text(String::new(), pieces);
        if let Phase::Solution(Some(splitter)) = &mut self.phase {
            let rest = said(splitter.finish());
            pieces.extend((!rest.is_empty()).then_some(Piece::Answer { text: rest, tokens: Tokens::ZERO }));
        }
        let usage = Usage {
            prompt: Tokens(event.tokens_evaluated),
            completion: Tokens(event.tokens_predicted),
            ..Usage::default()
        };
        pieces.extend([Piece::Usage(usage), Piece::End(ending)]);
        self.over = true;
    }
}

impl crate::backend::remote::Reader for Reader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if self.over || data == b"[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the server sent an event that is no completion"))?;
        if !event.error.is_null() {
            return Err(refusal::of_event(&event.error));
        }
        self.begin(&event, pieces);
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
}

/// What of the text is to be shown.
fn answer(splitter: Option<&mut Splitter>, text: String) -> String {
    match splitter {
        Some(splitter) => said(splitter.push(&text)),
        None => text,
    }
}

fn said(spans: Vec<Span>) -> String {
    let answer = |span| if let Span::Answer(text) = span { Some(text) } else { None };
    spans.into_iter().filter_map(answer).collect()
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}
