//! Pieces whose tokens the upstream does not report one by one.

use crate::{GenerationEnd, Piece};
use stint_types::units::Tokens;

/// More of the thought.
pub(super) fn thought(text: impl Into<String>) -> Piece {
    Piece::Thought { text: text.into(), tokens: Tokens::ZERO, ids: Vec::new() }
}

/// More of the answer.
pub(super) fn answer(text: impl Into<String>) -> Piece {
    Piece::Answer { text: text.into(), tokens: Tokens::ZERO }
}

/// The model ended its text; whether the end-of-text token is counted, these upstreams do not say.
pub(super) fn stop() -> GenerationEnd {
    GenerationEnd::Stop { tokens: Tokens::ZERO }
}
