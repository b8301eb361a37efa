//! The engine's steps as our pieces.

use crate::backend::{Edge, Ending, Piece, Usage};
use crate::engine::{Done, Role, SolutionEnd, Step};
use crate::prompt::{Detokenizer, Format};
use crate::units::Tokens;

/// Reads the steps of one generation.
#[derive(Debug)]
pub(super) struct Steps {
    thought: Detokenizer,
    answer: Detokenizer,
    start: Option<u32>,
    prompt: Tokens,
    /// 1 once the end-of-text token came.
    end: Tokens,
}

/// What is known before the first token: how long the prompt is.
pub(super) fn prompt(tokens: usize) -> Piece {
    let prompt = Tokens(tokens.try_into().unwrap_or(u64::MAX));
    Piece::Usage(Usage { prompt, ..Usage::default() })
}

impl Steps {
    /// At the beginning of a generation with so long a prompt.
    pub(super) fn new(format: &Format, prompt: usize) -> Steps {
        Steps {
            thought: format.detokenizer(),
            answer: format.detokenizer(),
            start: format.tags().map(|tags| tags.start),
            prompt: Tokens(prompt.try_into().unwrap_or(u64::MAX)),
            end: Tokens::ZERO,
        }
    }

    /// What one token is. The end of text is counted by [`Steps::done`].
    pub(super) fn step(&mut self, step: Step) -> Option<Piece> {
        let tokens = Tokens(1);
        Some(match step.role {
            Role::Thought => Piece::Thought { text: self.thought.push(step.id), tokens, ids: vec![step.id] },
            Role::Tag if Some(step.id) == self.start => Piece::Tag { tokens, edge: Edge::Start },
            Role::Tag => Piece::Tag { tokens, edge: Edge::End },
            Role::HandOff => Piece::HandOff { tokens },
            Role::Solution => Piece::Answer { text: self.answer.push(step.id), tokens },
            Role::End => {
                self.end = tokens;
                return None;
            }
        })
    }

    /// The last pieces.
    pub(super) fn done(&mut self, done: Done) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let rest = self.answer.finish();
        if !rest.is_empty() {
            pieces.push(Piece::Answer { text: rest, tokens: Tokens::ZERO });
        }
        let count = |tokens: u32| Tokens::from(tokens);
        pieces.push(Piece::Usage(Usage {
            prompt: self.prompt,
            completion: count(done.thought_tokens)
                + count(done.solution_tokens)
                + count(done.overhead_tokens),
            thinking: Some(count(done.thought_tokens)),
            ..Usage::default()
        }));
        pieces.push(Piece::End(match done.solution {
            SolutionEnd::Stop => Ending::Stop { tokens: self.end },
            SolutionEnd::Length => Ending::Limit,
        }));
        pieces
    }
}
