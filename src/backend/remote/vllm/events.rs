//! The chunks of vLLM's raw completions as our pieces.

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
    /// Tokens that may yet turn out to be no text: the tag, or the end of the text.
    held: Vec<u32>,
    ending: Option<Ending>,
}

#[derive(Debug)]
enum Phase {
    /// Closed by a tag of so many tokens.
    Thought(usize),
    /// With tags to be left out, where they could not be banned.
    Solution(Option<Splitter>),
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
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
    text: String,
    #[serde(default)]
    token_ids: Option<Vec<u32>>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// The text that stopped it; nothing at the end of the text.
    #[serde(default)]
    stop_reason: Value,
}

impl Reader {
    /// A reader of the first phase, whose thought is closed by a tag of so many tokens.
    pub(super) fn thought(tag: usize) -> Reader {
        Reader { phase: Phase::Thought(tag), held: Vec::new(), ending: None }
    }

    /// A reader of the second phase. What a splitter takes for a tag, or for a thought that was begun again, is left out;
    /// it counts as answer all the same.
    pub(super) fn solution(splitter: Option<Splitter>) -> Reader {
        Reader { phase: Phase::Solution(splitter), held: Vec::new(), ending: None }
    }

    fn choice(&mut self, choice: Choice, pieces: &mut VecDeque<Piece>) {
        self.held.extend(choice.token_ids.into_iter().flatten());
        let Some(word) = choice.finish_reason else {
            let keep = if let Phase::Thought(tag) = self.phase { tag.max(1) } else { 1 };
            let ids = self.take(keep);
            self.say(choice.text, ids, pieces);
            return;
        };
        let (keep, ending) = match (&self.phase, word.as_str()) {
            (_, "length") => (0, Ending::Limit),
            (Phase::Thought(tag), _) if choice.stop_reason.is_string() => {
                (*tag, Ending::Stop { tokens: Tokens::ZERO })
            }
            _ => (1, Ending::Stop { tokens: Tokens(1) }),
        };
        let ids = self.take(keep);
        // Half a character says nothing.
        let text = if ending == Ending::Limit {
            choice.text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
        } else {
            choice.text
        };
        self.say(text, ids, pieces);
        let rest = count(&self.held);
        if choice.stop_reason.is_string() {
            pieces.push_back(Piece::Tag { tokens: rest, edge: Edge::End });
        }
        // Without tokens in the stream there was no end-of-text token to be counted.
        let unseen = matches!(ending, Ending::Stop { .. }) && rest == Tokens::ZERO;
        self.ending = Some(if unseen { Ending::Stop { tokens: Tokens::ZERO } } else { ending });
    }

    /// All that is held but the last so many.
    fn take(&mut self, keep: usize) -> Vec<u32> {
        let rest = self.held.split_off(self.held.len().saturating_sub(keep));
        std::mem::replace(&mut self.held, rest)
    }

    fn say(&mut self, text: String, ids: Vec<u32>, pieces: &mut VecDeque<Piece>) {
        if text.is_empty() && ids.is_empty() {
            return;
        }
        let tokens = count(&ids);
        pieces.push_back(match &mut self.phase {
            Phase::Thought(_) => Piece::Thought { text, tokens, ids },
            Phase::Solution(None) => Piece::Answer { text, tokens },
            Phase::Solution(Some(splitter)) => Piece::Answer { text: said(splitter.push(&text)), tokens },
        });
    }

    fn end(&mut self, ending: Ending, pieces: &mut VecDeque<Piece>) {
        if let Phase::Solution(Some(splitter)) = &mut self.phase {
            let rest = said(splitter.finish());
            pieces.extend((!rest.is_empty()).then_some(Piece::Answer { text: rest, tokens: Tokens::ZERO }));
        }
        pieces.push_back(Piece::End(ending));
    }
}

impl crate::backend::remote::Reader for Reader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if data == b"[DONE]" {
            return self.close(pieces);
        }
        let chunk: Chunk = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the server sent an event that is no completion"))?;
        if !chunk.error.is_null() {
            return Err(refusal::of_event(&chunk.error));
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.choice(choice, pieces);
        }
        pieces.extend(usage(&chunk.usage).map(Piece::Usage));
        Ok(())
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        self.end(ending, pieces);
        Ok(())
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).map(Tokens);
    Some(Usage {
        prompt: number("/prompt_tokens")?,
        cache_read: number("/prompt_tokens_details/cached_tokens").unwrap_or_default(),
        completion: number("/completion_tokens")?,
        ..Usage::default()
    })
}

fn said(spans: Vec<Span>) -> String {
    let answer = |span| if let Span::Answer(text) = span { Some(text) } else { None };
    spans.into_iter().filter_map(answer).collect()
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}
