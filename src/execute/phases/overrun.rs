//! Handles a call that exceeds its limit: its thought is cut if an answer can still be asked for, else the call is hung up.

use stint_backend::{BehaviorObservation, Piece};
use stint_types::catalog::{SolutionStopReason, ThinkingStopReason};
use stint_types::units::Tokens;

use super::super::running_part::PartEnd;
use super::step::ChoiceEnd;
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// Hangs up on a call that does not hold its limit.
    pub(super) fn hang_up(&mut self, shown: String) -> ChoiceStep {
        // An upstream that was sent no limit does not break one.
        let breaks_limit = self.enforcer.observe_overrun(self.terms.tells_limit);
        self.enforcer.drop_withheld();
        self.observe_switch(false);
        if self.account.has_visible_thought() {
            self.end_thinking(ThinkingStopReason::Cut);
        }
        let reason = if breaks_limit { SolutionStopReason::Upstream } else { self.terms.solution_by.into() };
        let shown = [shown, self.stop_filter.flush()].concat();
        self.finalize(shown, PartEnd::BrokenOff, ChoiceEnd::broken_off(reason))
    }

    /// Handles the piece with which a call exceeds its limit.
    pub(super) fn on_overrun(&mut self, piece: Piece) -> ChoiceStep {
        let thinks = self.state == ChoiceState::Thinking && self.resume_class().is_some();
        match piece {
            Piece::Thought { text, tokens, .. } if thinks => {
                self.account.add_discarded_thought(&text, tokens);
                ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff))
            }
            Piece::Answer { text, tokens } => {
                self.begin_answer();
                self.account.add_solution(&text, tokens);
                let passed = self.enforcer.pass(&text);
                self.has_answered |= !passed.is_empty();
                let shown = self.shown_text(passed);
                self.hang_up(shown)
            }
            Piece::Usage(usage) => {
                self.account.set_usage(self.enforcer.clamp_usage(usage));
                self.hang_up(String::new())
            }
            Piece::Thought { text, tokens, .. } => {
                self.account.add_thinking(&text, tokens);
                self.hang_up(String::new())
            }
            Piece::ToolCall(delta) => {
                self.begin_answer();
                self.tool_calls = true;
                // The caller does not get these arguments, so they are not kept: the tool call stays unfinished.
                self.arguments.entry(delta.index).or_default();
                self.account.add_solution(&delta.arguments, Tokens::ZERO);
                self.hang_up(String::new())
            }
            _ => self.hang_up(String::new()),
        }
    }

    /// Records what a call that came to its end has shown of its target.
    pub(super) fn observe_end(&mut self) {
        self.enforcer.observe_end(self.terms.tells_limit);
        self.observe_switch(self.has_begun_answer());
    }

    /// Records whether the target obeyed, if this call was asked not to think.
    fn observe_switch(&mut self, answered: bool) {
        if self.is_makeshift() {
            self.enforcer.observe(BehaviorObservation::ThinkingSwitched(answered));
        }
    }
}
