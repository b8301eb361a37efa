//! What follows a stop text where only the upstream's last word says what a hidden thought took.
//!
//! Upstreams that hide their thoughts and take no stop texts go on writing. Breaking them off would leave the thought
//! untold, and all that it could have been would be booked. So the rest is let come, within the limit that was set aside,
//! and only counted.

use crate::backend::Piece;
use crate::catalog::SolutionEnded;
use crate::chat::Finish;

use super::super::account::Close;
use super::{Phases, State, Step};

impl Phases {
    /// The caller's stop text came: the answer is over, though the upstream may have to be heard out.
    pub(super) fn stop(&mut self, shown: String) -> Step {
        if !self.account.is_untold() {
            return self.over(shown, Close::BrokenOff, (SolutionEnded::Stop, Finish::Stop));
        }
        self.state = State::Draining;
        Step::Drain(super::shown(shown))
    }

    /// Counts a piece that nobody is to see. True once there is nothing more to wait for: the upstream has ended, or has
    /// written more than it was allowed.
    pub fn drain(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Answer { text, tokens } => self.account.dropped(&text, tokens),
            Piece::ToolCall(delta) => self.account.dropped(&delta.arguments, Default::default()),
            Piece::Usage(usage) => self.account.usage(usage),
            Piece::Thought { text, tokens, .. } => self.account.dropped(&text, tokens),
            Piece::End(_) => {
                self.drained(Close::Ended);
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
    pub fn leave(&mut self) -> Finish {
        if self.state == State::Draining {
            self.drained(Close::BrokenOff);
        }
        Finish::Stop
    }

    fn drained(&mut self, close: Close) {
        self.over(String::new(), close, (SolutionEnded::Stop, Finish::Stop));
    }
}
