//! Reads the rest of a call after a stop text, if only the upstream's last message says how long a hidden thought was.
//!
//! Upstreams that hide their thoughts and take no stop texts keep writing. A call that is broken off never reports its
//! thought, and the most that it could have been would be booked. So the rest is read, within the reserved limit, and only
//! counted.

use stint_backend::{Piece, Remark};
use stint_types::catalog::SolutionStopReason;
use stint_types::chat::FinishReason;
use stint_types::units::Tokens;

use super::super::running_part::PartEnd;
use super::step::{ChoiceEnd, visible_answer};
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// The caller's stop text came: the answer is over, though the rest of the call may have to be read.
    pub(super) fn on_stop_text(&mut self, shown: String) -> ChoiceStep {
        if !self.account.is_hidden_uncounted() {
            return self.finalize(shown, PartEnd::BrokenOff, ChoiceEnd::STOPPED);
        }
        self.state = ChoiceState::Draining;
        ChoiceStep::Drain(visible_answer(shown))
    }

    /// Counts a piece that nobody is to see. True once there is nothing more to wait for: the upstream has ended, or has
    /// written more than it was allowed.
    pub fn drain(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Answer { text, tokens } | Piece::Thought { text, tokens, .. } => {
                self.account.add_dropped(&text, tokens);
            }
            Piece::ToolCall(delta) => self.account.add_dropped(&delta.arguments, Tokens::ZERO),
            Piece::Usage(usage) => self.account.set_usage(usage),
            Piece::Remark(Remark::Members(members)) => self.account.spent.add_members(*members),
            Piece::End(_) => {
                self.finalize(String::new(), PartEnd::Completed, ChoiceEnd::STOPPED);
                return true;
            }
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Note(_) => {}
        }
        self.account.is_beyond_limit()
    }

    /// The end of a choice that was drained, whether or not the upstream came to its end.
    pub fn finish_drain(&mut self) -> FinishReason {
        if self.state == ChoiceState::Draining {
            self.finalize(String::new(), PartEnd::BrokenOff, ChoiceEnd::STOPPED);
        }
        FinishReason::Stop
    }

    /// What is reserved is used up, and there is no more: what was shown is the answer. A piece that came all the same is
    /// billed, and not shown.
    pub fn exhaust(&mut self, piece: Option<&Piece>, reason: SolutionStopReason) -> ChoiceStep {
        if let Some(piece) = piece {
            self.drain(piece.clone());
        }
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::BrokenOff, ChoiceEnd::broken_off(reason))
    }
}
