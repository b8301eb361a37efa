//! What was taken for a thought and was the answer: text that begins inside a thought, by its model's name, and of which no
//! tag says where the thought ends.

use super::{Phases, State, Step};

impl Phases {
    /// The running part's thought was its answer. It was shown as a thought already, and is shown as what it is now.
    pub(super) fn unthink(&mut self) -> Step {
        if self.state != State::Thinking {
            return Step::Quiet;
        }
        self.account.unthink();
        self.leave_rest(false);
        self.state = State::Solution;
        let text = std::mem::take(&mut self.thought).text;
        self.say(&text)
    }
}
