//! The answer: when it begins, and which of its text its reader sees.

use std::borrow::Cow;

use stint_types::catalog::{EnforcementClass, ThinkingStopReason};
use stint_types::units::Tokens;

use super::repeat_filter::RepeatFilter;
use super::{ChoiceState, ChoiceStateMachine};

impl ChoiceStateMachine {
    pub(super) fn begin_answer(&mut self) {
        if self.account.has_visible_thought() {
            self.end_thinking(ThinkingStopReason::Closed);
        } else if self.state == ChoiceState::Thinking {
            self.carry_over_thinking(false);
        }
        self.state = ChoiceState::Solution;
    }

    /// What of the text is new, where the answer is continued and its upstream may begin it again.
    pub(super) fn new_text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let Some(filter) = &mut self.repeat_filter else { return text.into() };
        let new = filter.push(text);
        if new.is_empty() {
            self.account.add_dropped(text, Tokens::ZERO);
        }
        new.into()
    }

    /// What the repeat filter withheld, so far as the limit lets it pass, now that no more comes.
    pub(super) fn flush_repeat_filter(&mut self) -> String {
        let text = self.repeat_filter.as_mut().map(RepeatFilter::flush).unwrap_or_default();
        self.enforcer.pass(&text).to_owned()
    }

    /// What may be shown of an answer that continues like this.
    pub(super) fn shown_text(&mut self, text: &str) -> String {
        let behind_thought = self.has_stray_tags || self.account.has_thought();
        self.stop_filter.push(text, behind_thought)
    }

    /// Where the thought was cut, it may go on in the answer; where a limit is the thought's, it may break off the
    /// answer that followed.
    pub(super) fn observe_answer(&mut self, text: &str) {
        if self.account.spent.thinking_ended == ThinkingStopReason::Cut {
            self.leaks.push(text);
        }
        if self.class == EnforcementClass::Continue || self.terms.continuation.is_some() {
            self.answer_so_far.push_str(text);
        }
    }
}
