//! What of a stream has come that may be billed, which says what a failure costs that the upstream reports in it.

use crate::{Failure, Piece};
use stint_types::units::Tokens;

/// What of an answer has come that may be billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamOutput {
    /// Neither text nor counts.
    Nothing,
    /// Counts alone.
    Counted,
    /// Something that a model wrote.
    Written,
}

impl StreamOutput {
    /// What a piece is of that.
    pub(super) fn of(piece: &Piece) -> StreamOutput {
        match piece {
            Piece::Thought { text, tokens, .. } | Piece::Answer { text, tokens }
                if !text.is_empty() || *tokens > Tokens::ZERO =>
            {
                StreamOutput::Written
            }
            Piece::Summary(text) if !text.is_empty() => StreamOutput::Written,
            Piece::Tag { tokens, .. } if *tokens > Tokens::ZERO => StreamOutput::Written,
            Piece::ToolCall(_) | Piece::Signed(_) | Piece::Logprobs(_) | Piece::Note(_) => {
                StreamOutput::Written
            }
            Piece::Usage(usage) if usage.prompt + usage.completion > Tokens::ZERO => StreamOutput::Counted,
            _ => StreamOutput::Nothing,
        }
    }

    /// A failure behind that. Providers bill answers, not errors that they report before there is one; behind something that was
    /// written nobody knows what they bill.
    pub(super) fn priced(self, failure: Failure) -> Failure {
        match self {
            StreamOutput::Nothing if failure.reported => failure.unsent(),
            StreamOutput::Nothing | StreamOutput::Counted => failure,
            StreamOutput::Written => Failure { reported: false, ..failure },
        }
    }
}
