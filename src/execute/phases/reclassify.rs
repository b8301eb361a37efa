//! What was taken for a thought and was the answer: text that begins inside a thought, by its model's name, and of which no
//! tag says where the thought ends.

use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// The running part's thought was its answer. It was shown as a thought already, and is shown as what it is now.
    pub(super) fn reclassify_thought(&mut self) -> ChoiceStep {
        if self.state != ChoiceState::Thinking {
            return ChoiceStep::Continue;
        }
        self.account.unthink();
        self.carry_over_thinking(false);
        self.state = ChoiceState::Solution;
        let text = std::mem::take(&mut self.thought).text;
        self.say(&text)
    }
}
