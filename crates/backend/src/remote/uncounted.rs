//! Pieces whose tokens the upstream does not report one by one.

use crate::{GenerationEnd, Piece};
use stint_types::chat::AnswerNote;
use stint_types::units::Tokens;

/// More of the thought.
pub(super) fn thought(text: impl Into<String>) -> Piece {
    Piece::Thought { text: text.into(), tokens: Tokens::ZERO, ids: Vec::new() }
}

/// More of the answer.
pub(super) fn answer(text: impl Into<String>) -> Piece {
    Piece::Answer { text: text.into(), tokens: Tokens::ZERO }
}

/// The note that a refusal begins, the first time that it is asked for.
pub(super) fn refusal_begins(refuses: &mut bool) -> Option<Piece> {
    (!std::mem::replace(refuses, true)).then_some(Piece::Note(AnswerNote::Refusal))
}

/// The model ended its text; whether the end-of-text token is counted, these upstreams do not say.
pub(super) fn stop() -> GenerationEnd {
    GenerationEnd::Stop { tokens: Tokens::ZERO }
}
