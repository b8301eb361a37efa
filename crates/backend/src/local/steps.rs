//! Translates the engine's steps to pieces.

use crate::{GenerationEnd, Piece, TagEdge, TokenUsage};
use stint_engine::{GeneratedToken, GenerationSummary, SolutionEnd, TokenRole};
use stint_prompt::{Detokenizer, PromptFormat};
use stint_types::units::Tokens;

/// Reads the steps of one generation.
#[derive(Debug)]
pub(super) struct StepDecoder {
    thought: Detokenizer,
    answer: Detokenizer,
    start: Option<u32>,
    prompt: Tokens,
    /// 1 once the end-of-text token came.
    end: Tokens,
}

/// What is known before the first token: how long the prompt is.
pub(super) fn prompt_usage(tokens: usize) -> Piece {
    let prompt = Tokens(tokens.try_into().unwrap_or(u64::MAX));
    Piece::Usage(TokenUsage { prompt, ..TokenUsage::default() })
}

impl StepDecoder {
    /// At the beginning of a generation with so long a prompt.
    pub(super) fn new(format: &PromptFormat, prompt: usize) -> StepDecoder {
        StepDecoder {
            thought: format.detokenizer(),
            answer: format.detokenizer(),
            start: format.tags().map(|tags| tags.start),
            prompt: Tokens(prompt.try_into().unwrap_or(u64::MAX)),
            end: Tokens::ZERO,
        }
    }

    /// What one token is. The end of text is counted by [`StepDecoder::finish`].
    pub(super) fn step(&mut self, step: GeneratedToken) -> Option<Piece> {
        let tokens = Tokens(1);
        Some(match step.role {
            TokenRole::Thought => {
                Piece::Thought { text: self.thought.push(step.id), tokens, ids: vec![step.id] }
            }
            TokenRole::Tag if Some(step.id) == self.start => Piece::Tag { tokens, edge: TagEdge::Start },
            TokenRole::Tag => Piece::Tag { tokens, edge: TagEdge::End },
            TokenRole::HandOff => Piece::HandOff { tokens },
            TokenRole::Solution => Piece::Answer { text: self.answer.push(step.id), tokens },
            TokenRole::End => {
                self.end = tokens;
                return None;
            }
        })
    }

    /// The last pieces.
    pub(super) fn finish(&mut self, done: GenerationSummary) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let rest = self.answer.finish();
        if !rest.is_empty() {
            pieces.push(Piece::Answer { text: rest, tokens: Tokens::ZERO });
        }
        let count = |tokens: u32| Tokens::from(tokens);
        pieces.push(Piece::Usage(TokenUsage {
            prompt: self.prompt,
            completion: count(done.thought_tokens)
                + count(done.solution_tokens)
                + count(done.overhead_tokens),
            thinking: Some(count(done.thought_tokens)),
            ..TokenUsage::default()
        }));
        pieces.push(Piece::End(match done.solution {
            SolutionEnd::Stop => GenerationEnd::Stop { tokens: self.end },
            SolutionEnd::Length => GenerationEnd::Limit,
        }));
        pieces
    }
}
