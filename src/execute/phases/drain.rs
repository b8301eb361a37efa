//! What follows a stop text where only the upstream's last word says what a hidden thought took.
//!
//! Upstreams that hide their thoughts and take no stop texts go on writing. Breaking them off would leave the thought
//! untold, and all that it could have been would be booked. So the rest is let come, within the limit that was set aside,
//! and only counted.

use crate::backend::Piece;
use crate::catalog::SolutionStopReason;
use crate::chat::FinishReason;

use super::super::usage_account::PartEnd;
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// The caller's stop text came: the answer is over, though the upstream may have to be heard out.
    pub(super) fn on_stop_text(&mut self, shown: String) -> ChoiceStep {
        if !self.account.is_hidden_uncounted() {
            return self.finalize(shown, PartEnd::BrokenOff, (SolutionStopReason::Stop, FinishReason::Stop));
        }
        self.state = ChoiceState::Draining;
        ChoiceStep::Drain(super::visible_answer(shown))
    }

    /// Counts a piece that nobody is to see. True once there is nothing more to wait for: the upstream has ended, or has
    /// written more than it was allowed.
    pub fn drain(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Answer { text, tokens } => self.account.add_dropped(&text, tokens),
            Piece::ToolCall(delta) => self.account.add_dropped(&delta.arguments, Default::default()),
            Piece::Usage(usage) => self.account.set_usage(usage),
            Piece::Thought { text, tokens, .. } => self.account.add_dropped(&text, tokens),
            Piece::End(_) => {
                self.conclude_drain(PartEnd::Completed);
                return true;
            }
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::StoppedBy(_)
            | Piece::Unthought
            | Piece::Logprobs(_) => {}
        }
        self.account.is_beyond_limit()
    }

    /// The end of a choice that was drained, whether or not the upstream was heard out.
    pub fn finish_drain(&mut self) -> FinishReason {
        if self.state == ChoiceState::Draining {
            self.conclude_drain(PartEnd::BrokenOff);
        }
        FinishReason::Stop
    }

    fn conclude_drain(&mut self, close: PartEnd) {
        self.finalize(String::new(), close, (SolutionStopReason::Stop, FinishReason::Stop));
    }
}
