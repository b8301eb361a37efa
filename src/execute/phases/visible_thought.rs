//! Thoughts that show where they were taken to be hidden: what can be seen can be cut.

use crate::backend::{BehaviorObservation, Turns};
use crate::catalog::EnforcementClass;
use crate::units::Tokens;

use super::ChoiceStateMachine;

/// What asks for the answer in a new turn has so many tokens itself.
const TURN_OVERHEAD: Tokens = Tokens(64);

impl ChoiceStateMachine {
    /// A thought shows. Where a limit was stated it is held like one that was to show, if an answer can be had in a new turn: else
    /// a cut would take the answer with the thought, and the upstream's own limit holds both. A target that went on thinking
    /// when it was asked not to would only do so once more.
    pub(super) fn on_visible_thought(&mut self) {
        if self.class != EnforcementClass::Effort || self.is_thought_visible {
            return;
        }
        self.is_thought_visible = true;
        self.enforcer.observe(BehaviorObservation::ShowsThoughts);
        self.account.mark_thought_visible();
        let conduct = self.enforcer.behavior;
        let may = self.terms.visible_max.is_some() && self.may_be_rescued();
        if may && self.takes_turns() && !conduct.ignores_switch {
            self.class = EnforcementClass::Turn;
        }
    }

    fn takes_turns(&self) -> bool {
        match self.enforcer.behavior.turns {
            Turns::Never => false,
            Turns::ByWord => self.effort_least().is_some(),
            Turns::Always => true,
        }
    }

    /// The caller's word for how hard to think, while the thought is asked for.
    pub fn effort_word(&self) -> Option<String> {
        self.terms.effort.clone().filter(|_| self.class != EnforcementClass::Effort && self.thinks)
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

    /// How much of a thought that is cut may be read again. Of one that was to be hidden only a second answer was set aside.
    pub(super) fn thought_tail_max(&self) -> Tokens {
        if self.is_thought_visible {
            self.thinking_max().min(self.terms.solution.saturating_sub(TURN_OVERHEAD))
        } else {
            self.terms.thinking
        }
    }

    /// The same, where there is a word by which it thinks less than before: without one another try only ends alike.
    pub(super) fn may_think_less(&self) -> bool {
        self.may_be_rescued() && self.effort_least().is_some()
    }

    /// True where an empty answer may be asked for once more, which a target that cannot be kept from thinking would not help.
    pub(super) fn may_be_rescued(&self) -> bool {
        self.terms.rescue && !self.rescued && !self.enforcer.behavior.ignores_switch
    }
}
