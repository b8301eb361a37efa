//! Translates the engine's steps to pieces.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{GenerationEnd, Piece, TagEdge, TokenUsage};
use stint_engine::{GeneratedToken, GenerationSummary, SolutionEnd, TokenLogprobs, TokenRole};
use stint_prompt::{Detokenizer, PromptFormat};
use stint_types::units::Tokens;

use super::spelled_thoughts::SpelledThoughts;

/// Reads the steps of one generation.
#[derive(Debug)]
pub(super) struct StepDecoder {
    format: Arc<PromptFormat>,
    thought: Detokenizer,
    answer: Detokenizer,
    start: Option<u32>,
    /// Reads the text where the tags of thinking are no tokens.
    spelled: Option<SpelledThoughts>,
    /// White space that came while a thought could still be opened, and how much of it.
    blank: (String, Tokens),
    /// How likely the next token was, where that is reported, and how likely those were that wait.
    likely: Option<TokenLogprobs>,
    waiting: Vec<Value>,
    prompt: Tokens,
    /// How much of the prompt was in the cache.
    reused: Tokens,
    /// 1 once the end-of-text token came.
    end: Tokens,
}

impl StepDecoder {
    /// At the beginning of a generation with so long a prompt. Where thoughts are looked for, it may begin within one.
    pub(super) fn new(format: Arc<PromptFormat>, prompt: usize, is_thinking: Option<bool>) -> StepDecoder {
        StepDecoder {
            thought: format.detokenizer(),
            answer: format.detokenizer(),
            start: format.tags().map(|tags| tags.start),
            spelled: is_thinking.and_then(|is_thinking| SpelledThoughts::new(&format, is_thinking)),
            blank: (String::new(), Tokens::ZERO),
            likely: None,
            waiting: Vec::new(),
            prompt: Tokens(prompt.try_into().unwrap_or(u64::MAX)),
            reused: Tokens::ZERO,
            end: Tokens::ZERO,
            format,
        }
    }

    /// How likely the next token was.
    pub(super) fn logprobs(&mut self, told: TokenLogprobs) {
        self.likely = Some(told);
    }

    /// What is known before the first token: how long the prompt is, and later how much of it was in the cache.
    pub(super) fn prompt_usage(&self) -> Piece {
        Piece::Usage(self.usage())
    }

    /// The prompt was read; so much of it was in the cache.
    pub(super) fn prompt_read(&mut self, reused: u32) -> Piece {
        self.reused = Tokens::from(reused).min(self.prompt);
        self.prompt_usage()
    }

    fn usage(&self) -> TokenUsage {
        TokenUsage { prompt: self.prompt, cache_read: self.reused, ..TokenUsage::default() }
    }

    /// What one token is, behind how likely it was where that is reported.
    pub(super) fn step(&mut self, step: GeneratedToken) -> Vec<Piece> {
        if let Some(told) = self.likely.take() {
            self.waiting.push(self.entry(step.id, &told));
        }
        match &mut self.spelled {
            Some(spelled) if step.role != TokenRole::End => {
                let told = spelled.read(step);
                self.with_logprobs(told)
            }
            _ => {
                let told = self.piece(step);
                self.with_logprobs(told)
            }
        }
    }

    /// The same pieces, with how likely the answer's tokens were before them.
    fn with_logprobs(&mut self, told: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(2);
        for piece in told {
            match piece {
                Piece::Answer { .. } if !self.waiting.is_empty() => {
                    pieces.push(Piece::Logprobs(std::mem::take(&mut self.waiting)));
                }
                // The white space that waited was none of the answer.
                _ => self.waiting.clear(),
            }
            pieces.push(piece);
        }
        pieces
    }

    /// How likely a token was, in `OpenAI`'s form.
    fn entry(&self, id: u32, told: &TokenLogprobs) -> Value {
        let token = |id: u32, logprob: f32| {
            let bytes = self.format.token_bytes(id);
            json!({ "token": self.format.token_text(id), "logprob": finite(logprob), "bytes": bytes })
        };
        let mut entry = token(id, told.logprob);
        entry["top_logprobs"] = told.top.iter().map(|(id, logprob)| token(*id, *logprob)).collect();
        entry
    }

    /// White space waits until it is known what follows. The end of text is counted by
    /// [`StepDecoder::finish`].
    fn piece(&mut self, step: GeneratedToken) -> Option<Piece> {
        let tokens = Tokens(1);
        Some(match step.role {
            TokenRole::Thought => {
                Piece::Thought { text: self.thought.push(step.id), tokens, ids: vec![step.id] }
            }
            TokenRole::Tag if Some(step.id) == self.start => {
                let (_, blanks) = std::mem::take(&mut self.blank);
                Piece::Tag { tokens: blanks + tokens, edge: TagEdge::Start }
            }
            TokenRole::Tag => Piece::Tag { tokens, edge: TagEdge::End },
            TokenRole::HandOff => Piece::HandOff { tokens },
            TokenRole::Solution => {
                let (blank, blanks) = std::mem::take(&mut self.blank);
                let text = blank + &self.answer.push(step.id);
                Piece::Answer { text, tokens: blanks + tokens }
            }
            TokenRole::Blank => {
                self.blank.0.push_str(&self.answer.push(step.id));
                self.blank.1 += tokens;
                return None;
            }
            TokenRole::End => {
                self.end = tokens;
                return None;
            }
        })
    }

    /// The last pieces.
    pub(super) fn finish(&mut self, done: GenerationSummary) -> Vec<Piece> {
        let rest = self.spelled.as_mut().and_then(SpelledThoughts::finish);
        let mut pieces = self.with_logprobs(rest);
        let (blank, tokens) = std::mem::take(&mut self.blank);
        let text = blank + &self.answer.finish();
        if !text.is_empty() || tokens > Tokens::ZERO {
            let waiting = std::mem::take(&mut self.waiting);
            pieces.extend((!waiting.is_empty()).then_some(Piece::Logprobs(waiting)));
            pieces.push(Piece::Answer { text, tokens });
        }
        let count = |tokens: u32| Tokens::from(tokens);
        pieces.push(Piece::Usage(TokenUsage {
            completion: count(done.thought_tokens)
                + count(done.solution_tokens)
                + count(done.overhead_tokens),
            thinking: Some(count(done.thought_tokens)),
            ..self.usage()
        }));
        pieces.push(Piece::End(match done.solution {
            SolutionEnd::Stop => GenerationEnd::Stop { tokens: self.end },
            SolutionEnd::Length => GenerationEnd::Limit,
        }));
        pieces
    }
}

/// What stands for impossible where JSON has no word for it, as `OpenAI` has it.
const IMPOSSIBLE: f32 = -9999.0;

fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { IMPOSSIBLE }
}
