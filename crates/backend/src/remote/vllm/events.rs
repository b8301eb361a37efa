//! Translates the chunks of vLLM's raw completions to pieces.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use crate::remote::answer_end::is_done;
use crate::remote::finish_word;
use crate::remote::refusal;
use crate::{Failure, Fault, GenerationEnd, Piece, TagEdge, TokenUsage};
use stint_prompt::tags::{Splitter, TaggedSpan};
use stint_types::units::Tokens;

/// Reads the stream of one phase.
#[derive(Debug)]
pub(super) struct VllmReader {
    phase: VllmPhase,
    /// Tokens that may yet turn out to be no text: the tag, or the end of the text.
    held: Vec<u32>,
    ending: Option<GenerationEnd>,
}

#[derive(Debug)]
enum VllmPhase {
    /// Closed by a tag of so many tokens.
    Thought(usize),
    /// With tags to be left out, where they could not be banned.
    Solution(Option<Splitter>),
}

#[derive(Debug, Deserialize)]
struct VllmChunk {
    #[serde(default)]
    choices: Vec<VllmChoice>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct VllmChoice {
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

impl VllmReader {
    /// A reader of the first phase, whose thought is closed by a tag of so many tokens.
    pub(super) fn thought(tag: usize) -> VllmReader {
        VllmReader { phase: VllmPhase::Thought(tag), held: Vec::new(), ending: None }
    }

    /// A reader of the second phase. What a splitter takes for a tag, or for a thought that was begun again, is left out;
    /// it counts as answer all the same.
    pub(super) fn solution(splitter: Option<Splitter>) -> VllmReader {
        VllmReader { phase: VllmPhase::Solution(splitter), held: Vec::new(), ending: None }
    }

    fn choice(&mut self, choice: VllmChoice, pieces: &mut VecDeque<Piece>) {
        self.held.extend(choice.token_ids.into_iter().flatten());
        let Some(word) = choice.finish_reason else {
            let keep = if let VllmPhase::Thought(tag) = self.phase { tag.max(1) } else { 1 };
            let ids = self.take_held(keep);
            self.push_text(choice.text, ids, pieces);
            return;
        };
        let (keep, ending) = match &self.phase {
            _ if let Some(cut) = cut_by(&word) => (0, cut),
            VllmPhase::Thought(tag) if choice.stop_reason.is_string() => {
                (*tag, GenerationEnd::Stop { tokens: Tokens::ZERO })
            }
            _ => (1, GenerationEnd::Stop { tokens: Tokens(1) }),
        };
        let ids = self.take_held(keep);
        // Half a character says nothing.
        let text = if ending.is_cut() {
            choice.text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
        } else {
            choice.text
        };
        self.push_text(text, ids, pieces);
        let rest = count(&self.held);
        if choice.stop_reason.is_string() {
            pieces.push_back(Piece::Tag { tokens: rest, edge: TagEdge::End });
        }
        // Without tokens in the stream there was no end-of-text token to be counted.
        let unseen = matches!(ending, GenerationEnd::Stop { .. }) && rest == Tokens::ZERO;
        self.ending = Some(if unseen { GenerationEnd::Stop { tokens: Tokens::ZERO } } else { ending });
    }

    /// All that is held but the last so many.
    fn take_held(&mut self, keep: usize) -> Vec<u32> {
        let rest = self.held.split_off(self.held.len().saturating_sub(keep));
        std::mem::replace(&mut self.held, rest)
    }

    fn push_text(&mut self, text: String, ids: Vec<u32>, pieces: &mut VecDeque<Piece>) {
        if text.is_empty() && ids.is_empty() {
            return;
        }
        let tokens = count(&ids);
        pieces.push_back(match &mut self.phase {
            VllmPhase::Thought(_) => Piece::Thought { text, tokens, ids },
            VllmPhase::Solution(None) => Piece::Answer { text, tokens },
            VllmPhase::Solution(Some(splitter)) => {
                Piece::Answer { text: answer_text(splitter.push(&text)), tokens }
            }
        });
    }

    fn end(&mut self, ending: GenerationEnd, pieces: &mut VecDeque<Piece>) {
        if let VllmPhase::Solution(Some(splitter)) = &mut self.phase {
            let rest = answer_text(splitter.finish());
            pieces.extend((!rest.is_empty()).then_some(Piece::Answer { text: rest, tokens: Tokens::ZERO }));
        }
        pieces.push_back(Piece::End(ending));
    }
}

impl crate::remote::EventReader for VllmReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if is_done(data) {
            return self.close(pieces);
        }
        let chunk: VllmChunk = serde_json::from_slice(data)
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

    fn is_complete(&self) -> bool {
        self.ending.is_some()
    }
}

/// What cut an answer that did not come to its end, by the word for that.
fn cut_by(word: &str) -> Option<GenerationEnd> {
    match finish_word::ending(word) {
        Ok(GenerationEnd::Stop { .. } | GenerationEnd::ToolCalls) => None,
        Ok(ending) if ending.is_cut() => Some(ending),
        _ => Some(GenerationEnd::BrokenOff),
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).map(Tokens);
    Some(TokenUsage {
        prompt: number("/prompt_tokens")?,
        cache_read: number("/prompt_tokens_details/cached_tokens").unwrap_or_default(),
        completion: number("/completion_tokens")?,
        ..TokenUsage::default()
    })
}

fn answer_text(spans: Vec<TaggedSpan>) -> String {
    let answer = |span| if let TaggedSpan::Answer(text) = span { Some(text) } else { None };
    spans.into_iter().filter_map(answer).collect()
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}
