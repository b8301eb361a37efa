//! Thoughts that come after the answer's first word, as models write them that think between the pieces of an answer.
//!
//! They count against the same budget as the thought before the answer. A thought that goes beyond it is cut like that one, with the
//! same tolerance, but the caller has some of the answer by then, which a new turn would begin again. So the call is hung up, and what
//! came is the answer; only where the answer can be continued behind what came of it, and that is paid for, it is.

use stint_types::catalog::{EnforcementClass, SolutionStopReason, ThinkingStopReason};
use stint_types::chat::ChoiceEvent;
use stint_types::units::Tokens;

use super::super::overrun_guard::with_tolerance;
use super::super::running_part::{CountBias, PartEnd};
use super::step::ChoiceEnd;
use super::{ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// A thought comes after the answer's first word. Where thoughts are cut by stopping a call, it is not shown.
    pub(super) fn on_late_thought(&mut self, text: String, tokens: Tokens) -> ChoiceStep {
        self.mark_visible();
        if self.is_late_thought_beyond(&text, tokens) {
            if self.can_continue_behind_thought() {
                return self.continue_behind_thought(&text, tokens);
            }
            return self.end_at_thought(&text, tokens);
        }
        self.account.add_thinking(&text, tokens);
        if self.class.is_resumed() || text.is_empty() {
            ChoiceStep::Continue
        } else {
            ChoiceStep::Show(ChoiceEvent::Thought(text))
        }
    }

    /// True if a thought goes beyond what was set aside for it, where somebody limits thinking tokens. Where one limit holds thought
    /// and answer, all of that was set aside.
    pub(super) fn is_beyond_reserved(&self) -> bool {
        let is_apart = self.class.is_resumed() || self.class == EnforcementClass::Native;
        let most = with_tolerance(self.thinking_left());
        self.terms.limits_thoughts && is_apart && self.enforcer.thinking_tokens() > most
    }

    /// The thought is too long, and no answer can be had after it: what came of the answer is all of it.
    pub(super) fn end_at_thought(&mut self, text: &str, tokens: Tokens) -> ChoiceStep {
        self.discard_thought(text, tokens);
        let passed = self.flush_repeat_filter();
        let mut shown = self.shown_text(&passed);
        let released = self.enforcer.release().unwrap_or_default();
        shown += &self.shown_text(&released);
        shown += &self.stop_filter.flush();
        let end = if self.stop_filter.stopped_by().is_some() {
            ChoiceEnd::STOPPED
        } else {
            ChoiceEnd::broken_off(SolutionStopReason::Upstream)
        };
        self.finalize(shown, PartEnd::BrokenOff, end)
    }

    /// What the budget leaves the thoughts of the running call.
    fn thinking_left(&self) -> Tokens {
        self.thinking_max().saturating_sub(self.account.spent.thinking)
    }

    /// Whether the thoughts of the running call with one more piece go beyond what its class allows, by the best count there is. A call
    /// that was not asked to think is given as much as any call beyond its limit.
    fn is_late_thought_beyond(&self, text: &str, tokens: Tokens) -> bool {
        let left = self.thinking_left();
        let counted = |bias| self.account.thinking_with(text, tokens, bias);
        match self.class {
            EnforcementClass::Effort => {
                let stated = self.terms.visible_max.map(EnforcementClass::native_max);
                stated.is_some_and(|most| counted(CountBias::Low) > most)
            }
            _ if !self.thinks => self.enforcer.late_thinking_tokens() > with_tolerance(left),
            EnforcementClass::Continue if tokens > Tokens::ZERO => {
                self.account.thinking_now() + tokens > left
            }
            EnforcementClass::Continue => self.enforcer.thinking_tokens() > with_tolerance(left),
            EnforcementClass::Turn => counted(CountBias::High) > left,
            EnforcementClass::Inline | EnforcementClass::Native => {
                counted(CountBias::Low) > EnforcementClass::native_max(left)
            }
        }
    }

    /// Books a piece of a thought that goes too far, and ends the thought.
    fn discard_thought(&mut self, text: &str, tokens: Tokens) {
        self.overran |= self.class == EnforcementClass::Native;
        self.account.add_discarded_thought(text, tokens);
        self.end_thinking(ThinkingStopReason::Cut);
        self.account.spent.thinking_ended = ThinkingStopReason::Cut;
    }

    /// True if a second call was reserved, has not been made, and suffices to read what came of the answer.
    fn can_continue_behind_thought(&self) -> bool {
        let is_open = self.class == EnforcementClass::Continue && self.thinks && !self.tool_calls;
        let read = || {
            let thought = self.account.estimate_tokens(&self.thought.text);
            thought + self.account.solution_so_far() <= self.terms.thinking
        };
        is_open
            && self.terms.resume == Some(EnforcementClass::Continue)
            && self.account.solution_so_far() < self.terms.solution
            && !self.enforcer.withholds()
            && (self.terms.has_free_input || read())
    }

    /// Cuts the thought, and asks for the rest of the answer behind what came of it.
    fn continue_behind_thought(&mut self, text: &str, tokens: Tokens) -> ChoiceStep {
        self.discard_thought(text, tokens);
        // What stands before the answer is the thought that was closed by it.
        self.account.spent.thinking_ended = ThinkingStopReason::Closed;
        let thought = self.close_thought(ThinkingStopReason::Closed, PartEnd::BrokenOff);
        self.account.spent.thinking_ended = ThinkingStopReason::Cut;
        let left = self.terms.solution.saturating_sub(self.account.solution_so_far()).max(Tokens(1));
        ChoiceStep::Call(self.continuing_part(thought, self.answer_so_far.clone(), left))
    }
}
