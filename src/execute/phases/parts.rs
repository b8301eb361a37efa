//! The calls that a choice consists of: the first, the answer after a thought, a second try.

use std::sync::Arc;

use stint_backend::{GenerationPart, Thought};
use stint_types::catalog::{EnforcementClass, ThinkingStopReason};
use stint_types::units::Tokens;

use super::super::overrun_guard::with_tolerance;
use super::super::running_part::PartEnd;
use super::super::thought_tail::thought_tail;
use super::{ChoiceState, ChoiceStateMachine, ChoiceTerms, WholeAnswer};

impl ChoiceStateMachine {
    /// The first part to call for.
    pub fn begin(&mut self) -> GenerationPart {
        let ChoiceTerms { thinking, solution, .. } = self.terms;
        let whole = thinking + solution + self.terms.overhead;
        let is_whole = self.may_come_whole();
        // What comes in one piece is written unseen.
        self.account.begin(if is_whole { Some(whole) } else { self.hidden_max(whole) });
        if is_whole && !self.terms.may_think_unseen() {
            self.account.mark_unseen_answer();
        }
        let thinks = thinking > Tokens::ZERO || self.class == EnforcementClass::Effort;
        self.state = if thinks { ChoiceState::Thinking } else { ChoiceState::Solution };
        self.thinks = thinks;
        let part = match self.class {
            EnforcementClass::Inline | EnforcementClass::Native => {
                GenerationPart::Whole { thinking, solution }
            }
            EnforcementClass::Continue | EnforcementClass::Turn if thinks => {
                GenerationPart::Thought { thinking, solution }
            }
            EnforcementClass::Continue | EnforcementClass::Turn => {
                GenerationPart::after_thought(Thought::default(), solution)
            }
            EnforcementClass::Effort => {
                GenerationPart::Total { effort: self.terms.effort.clone(), tokens: whole }
            }
        };
        let part = self.prepare_part(part);
        self.is_whole = is_whole;
        part
    }

    /// Whether the first call may be answered in one piece: the target is not known to break limits, and no thought of it could
    /// be cut.
    fn may_come_whole(&self) -> bool {
        let behavior = &self.enforcer.behavior;
        let is_allowed = match self.terms.whole {
            WholeAnswer::Never => false,
            WholeAnswer::Always => true,
            WholeAnswer::WhileMeasured => behavior.is_measured,
        };
        let is_held = !behavior.breaks_limits && !behavior.shows_thoughts;
        is_allowed && behavior.answers_whole && is_held && self.class == EnforcementClass::Effort
    }

    /// Time is up for thinking: closes the thought here, where the class can resume from it.
    pub fn cut(&mut self) -> Option<GenerationPart> {
        let resumes = self.resume_class().is_some() && self.state == ChoiceState::Thinking;
        resumes.then(|| self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff))
    }

    /// Ends the part that thinks and asks for the answer from where it stands.
    pub(super) fn resume(&mut self, ended: ThinkingStopReason, part_end: PartEnd) -> GenerationPart {
        let thought = self.close_thought(ended, part_end);
        self.prepare_part(GenerationPart::after_thought(thought, self.terms.solution))
    }

    /// Ends the part that thinks; the thought is what the next part is to read of it.
    pub(super) fn close_thought(&mut self, ended: ThinkingStopReason, part_end: PartEnd) -> Arc<Thought> {
        self.end_thinking(ended);
        self.take_back_thinking(ended != ThinkingStopReason::Closed);
        let mut thought = std::mem::take(&mut self.thought);
        self.shorten_thought(&mut thought);
        self.account.next_part(part_end);
        self.state = ChoiceState::Solution;
        self.class = self.resume_class().unwrap_or(self.class);
        self.thinks = false;
        thought.closed = self.account.spent.thinking_ended == ThinkingStopReason::Closed;
        let thought = Arc::new(thought);
        if self.terms.continuation.is_some() {
            self.continuation.set_prior_thought(&thought);
        }
        thought
    }

    /// The limit went into a thought: once more, with the least thinking. What came of the first try is not
    /// part of the answer.
    pub(super) fn rescue(&mut self) -> GenerationPart {
        let tokens = self.terms.solution + self.terms.overhead;
        self.account.restart(Some(tokens));
        self.account.spent.thinking_ended = ThinkingStopReason::None;
        self.state = ChoiceState::Thinking;
        self.rescued = true;
        self.is_thought_visible = false;
        self.thought = Thought::default();
        self.prepare_part(GenerationPart::Total { effort: self.terms.effort_least.clone(), tokens })
    }

    /// A later part was refused before a model saw it: it is called for again.
    pub fn repeat_part(&mut self, part: GenerationPart) -> GenerationPart {
        let hidden = match part {
            GenerationPart::Total { tokens, .. } => Some(tokens),
            GenerationPart::Whole { .. }
            | GenerationPart::Thought { .. }
            | GenerationPart::Solution { .. } => None,
        };
        self.account.begin_repeat(hidden);
        self.prepare_part(part)
    }

    /// The part is called for next, and its limit is enforced from now on.
    pub(super) fn prepare_part(&mut self, part: GenerationPart) -> GenerationPart {
        let overhead = match part {
            GenerationPart::Whole { .. } | GenerationPart::Thought { .. } => self.terms.overhead,
            GenerationPart::Solution { .. } | GenerationPart::Total { .. } => Tokens::ZERO,
        };
        let limit = part.tokens_max() + overhead;
        self.is_whole = false;
        self.enforcer.begin_part(&part, limit, self.terms.output_min);
        self.account.set_limit(with_tolerance(limit));
        part
    }

    /// All that the first call may write unseen, where its thought may be hidden. The upstream bills it also where the caller
    /// hangs up meanwhile.
    fn hidden_max(&self, whole: Tokens) -> Option<Tokens> {
        let ChoiceTerms { class, thinking, rescue, .. } = self.terms;
        match class {
            EnforcementClass::Effort => (rescue && !self.enforcer.behavior.shows_thoughts).then_some(whole),
            EnforcementClass::Native => {
                let beyond = EnforcementClass::native_max(thinking).saturating_sub(thinking);
                (thinking > Tokens::ZERO).then_some(whole + beyond)
            }
            EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Turn => None,
        }
    }

    /// Leaves of a thought that is to be read again as much as was reserved for reading it. In the class `continue` the
    /// upstream's own limit has held it already.
    fn shorten_thought(&self, thought: &mut Thought) {
        let room = match self.class {
            EnforcementClass::Turn => self.thought_tail_max(),
            EnforcementClass::Native => EnforcementClass::native_max(self.terms.thinking),
            EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Effort => return,
        };
        if self.terms.has_free_input {
            return;
        }
        let quoted = thought_tail(
            &thought.text,
            room + self.account.prompt_spare(),
            self.account.thinking_upper_bound(),
        );
        if quoted.len() < thought.text.len() {
            *thought = Thought { text: quoted.to_owned(), ..Thought::default() };
        }
    }
}
