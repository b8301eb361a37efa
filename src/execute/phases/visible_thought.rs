//! What may be done about a thought: whether it can be cut, tried again or read again. A thought that is visible, although
//! the upstream was expected to hide it, can be cut.

use stint_backend::{BehaviorObservation, Turns};
use stint_types::catalog::EnforcementClass;
use stint_types::units::Tokens;

use super::ChoiceStateMachine;

/// What asks for the answer in a new turn has so many tokens itself.
const TURN_OVERHEAD: Tokens = Tokens(64);

impl ChoiceStateMachine {
    /// A thought shows. Where a limit was stated it is held like one that was to show, if an answer can be had in a new turn: else
    /// a cut would take the answer with the thought, and the upstream's own limit holds both. A target that went on thinking
    /// when it was asked not to would only do so once more.
    pub(super) fn on_visible_thought(&mut self) {
        if !self.mark_visible() {
            return;
        }
        let can_cut = self.terms.visible_max.is_some() && self.may_be_rescued();
        if can_cut && self.takes_turns() && !self.enforcer.behavior.ignores_switch {
            self.class = EnforcementClass::Turn;
        }
    }

    /// Notes that a thought shows that was to be hidden; false if that is known, or none was to be.
    pub(super) fn mark_visible(&mut self) -> bool {
        if self.class != EnforcementClass::Effort || self.is_thought_visible {
            return false;
        }
        self.is_thought_visible = true;
        self.enforcer.observe(BehaviorObservation::ShowsThoughts);
        self.account.mark_thought_visible();
        true
    }

    fn takes_turns(&self) -> bool {
        match self.enforcer.behavior.turns {
            Turns::Never => false,
            Turns::ByWord => self.effort_least().is_some(),
            Turns::Always => true,
        }
    }

    /// How an answer is asked for after the running thought was stopped from outside, where that can be.
    pub(super) fn resume_class(&self) -> Option<EnforcementClass> {
        let surfaced = self.is_thought_visible && self.class == EnforcementClass::Turn;
        self.terms.resume.or(surfaced.then_some(EnforcementClass::Turn))
    }

    /// The budget of the running thought.
    pub(super) fn thinking_max(&self) -> Tokens {
        self.terms.visible_max.filter(|_| self.is_thought_visible).unwrap_or(self.terms.thinking)
    }

    /// How much of a thought that is cut may be read again. Of one that was to be hidden only a second answer was reserved.
    pub(super) fn thought_tail_max(&self) -> Tokens {
        if self.is_thought_visible {
            self.thinking_max().min(self.terms.solution.saturating_sub(TURN_OVERHEAD))
        } else {
            self.terms.thinking
        }
    }

    /// True if an empty answer may be asked for once more, and there is a word by which the target thinks less than before.
    /// Without one another try only ends alike.
    pub(super) fn may_think_less(&self) -> bool {
        self.may_be_rescued() && self.effort_least().is_some()
    }

    /// True if an empty answer may be asked for once more. That does not help where a target cannot be kept from thinking.
    fn may_be_rescued(&self) -> bool {
        self.terms.rescue && !self.rescued && !self.enforcer.behavior.ignores_switch
    }

    /// True if the running part was not planned, but is tried because a thought was seen, or had left no answer.
    pub(super) fn is_makeshift(&self) -> bool {
        self.terms.class == EnforcementClass::Effort
            && (self.rescued || self.class == EnforcementClass::Turn && !self.thinks)
    }
}
