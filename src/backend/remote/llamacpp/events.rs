//! llama.cpp's events as our pieces.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use crate::backend::remote::refusal;
use crate::backend::{Edge, Ending, Failure, Fault, Piece, Usage};
use crate::prompt::tags::Margin;
use crate::units::Tokens;

/// Reads the stream of one phase.
#[derive(Debug)]
pub(super) struct Reader {
    phase: Phase,
    /// Tokens that came without text: inside a character, at what may become the tag, or the last one of all,
    /// of which only the final event says what it was.
    held: Vec<u32>,
    over: bool,
}

#[derive(Debug)]
enum Phase {
    /// Closed by this token, where it is one.
    Thought(Option<u32>),
    Solution(Margin),
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
        Reader { phase: Phase::Thought(end), held: Vec::new(), over: false }
    }

    /// A reader of the second phase.
    pub(super) fn solution() -> Reader {
        Reader { phase: Phase::Solution(Margin::before_answer()), held: Vec::new(), over: false }
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
            Phase::Solution(margin) => Piece::Answer { text: margin.trim(&text).to_owned(), tokens },
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
        let usage = Usage {
            prompt: Tokens(event.tokens_evaluated),
            completion: Tokens(event.tokens_predicted),
            thinking: None,
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

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}
