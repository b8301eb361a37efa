//! The end of a thought, and how much of its budget goes to the answer.

use stint_types::catalog::{EnforcementClass, ThinkingStopReason};
use stint_types::units::Tokens;

use super::super::overrun_guard::with_tolerance;
use super::super::running_part::CountBias;
use super::{CarriedThinking, ChoiceState, ChoiceStateMachine};

impl ChoiceStateMachine {
    /// The thought is over: what follows is the answer's budget. The first reason holds.
    pub(super) fn end_thinking(&mut self, ended: ThinkingStopReason) {
        if self.state == ChoiceState::Thinking {
            self.state = ChoiceState::Closed;
            self.account.spent.thinking_ended = ended;
            self.carry_over_thinking(matches!(ended, ThinkingStopReason::Cut | ThinkingStopReason::Stopped));
        }
    }

    /// Leaves to the answer what the thought has left of a limit that holds both, by the count that is rather too high, and what
    /// was kept for a hand-off that does not come.
    pub(super) fn carry_over_thinking(&mut self, is_handed_off: bool) {
        if self.class == EnforcementClass::Effort {
            // One limit holds both all the time.
            return;
        }
        if std::mem::take(&mut self.terms.answer_takes_rest) {
            let used = self.account.thinking_with("", Tokens::ZERO, CountBias::High);
            let unwritten = self.terms.overhead.saturating_sub(self.account.overhead_now());
            let resumes = matches!(self.class, EnforcementClass::Continue | EnforcementClass::Turn);
            let kept = if resumes && !is_handed_off { unwritten } else { Tokens::ZERO };
            let left = self.terms.thinking.saturating_sub(used);
            self.carried = CarriedThinking { rest: left, kept, used };
            let rest = left + kept;
            self.terms.solution += rest;
            self.enforcer.widen(rest);
        }
    }

    /// What was thought after its rest was left to the answer is taken from the answer again: one limit holds both. So is what was
    /// kept for a hand-off, where one comes after all.
    pub(super) fn take_back_thinking(&mut self, is_handed_off: bool) {
        let CarriedThinking { rest, kept, used } = std::mem::take(&mut self.carried);
        let now = self.account.thinking_with("", Tokens::ZERO, CountBias::High);
        let more = now.saturating_sub(used).min(rest);
        let kept = if is_handed_off { kept } else { Tokens::ZERO };
        self.terms.solution = self.terms.solution.saturating_sub(more + kept);
    }

    /// Why a hand-off came: the budget was spent, or the model ended its text before that.
    pub(super) fn hand_off_reason(&self) -> ThinkingStopReason {
        let spent = self.account.thinking_now() >= self.terms.thinking;
        if spent || self.class != EnforcementClass::Inline {
            ThinkingStopReason::Cut
        } else {
            ThinkingStopReason::Stopped
        }
    }

    /// Whether a thought with one more piece goes beyond what its class allows, by the best count there is. A limit that the
    /// backend holds itself is only doubted where it counts each token.
    pub(super) fn is_beyond_budget(&self, text: &str, tokens: Tokens) -> bool {
        let t = self.thinking_max();
        match self.class {
            EnforcementClass::Continue if tokens > Tokens::ZERO => self.account.thinking_now() + tokens > t,
            EnforcementClass::Continue => self.enforcer.thinking_tokens() > with_tolerance(t),
            EnforcementClass::Turn => self.account.thinking_with(text, tokens, CountBias::High) > t,
            EnforcementClass::Native => {
                self.account.thinking_with(text, tokens, CountBias::Low) > EnforcementClass::native_max(t)
            }
            EnforcementClass::Inline | EnforcementClass::Effort => false,
        }
    }
}
