//! Continues an answer in another call, when it ended only for lack of money. The reader sees one answer.

use std::sync::Arc;

use stint_backend::{Failure, Fault, GenerationEnd, GenerationPart, Piece, Thought};
use stint_types::catalog::{ContinuationLimit, LimitedBy, SolutionStopReason, ThinkingStopReason};
use stint_types::units::Tokens;

use super::super::continuation::ContinuationNeed;
use super::super::running_part::PartEnd;
use super::limit_enforcer::count_max;
use super::repeat_filter::RepeatFilter;
use super::step::{ChoiceEnd, visible_answer};
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// What another call needs, where this piece is the end that money alone sets to an answer.
    pub fn continuation_need(&self, piece: &Piece) -> Option<ContinuationNeed> {
        let (ContinuationLimit { max, .. }, limit) = (self.terms.continuation?, self.terms.solution);
        if *piece != Piece::End(GenerationEnd::Limit) || self.terms.solution_by != LimitedBy::Money {
            return None;
        }
        let answers =
            self.state == ChoiceState::Solution && !self.tool_calls && !self.answer_so_far.trim().is_empty();
        let so_far = self.account.solution_so_far();
        let is_used_up = count_max(so_far) >= limit;
        let ended = self.stop_filter.stopped_by().is_some() || !self.enforcer.holds_limit();
        if !answers || !is_used_up || ended || limit >= max {
            return None;
        }
        let thinking = self.spent().thinking;
        let read = self.terms.prompt + thinking + so_far.max(limit) + self.terms.overhead;
        Some(ContinuationNeed { read, limit, max })
    }

    /// So many more tokens of the answer are paid for, or why none are.
    pub fn apply_grant(&mut self, granted: Result<Tokens, SolutionStopReason>) {
        match granted {
            Ok(more) => {
                self.terms.solution += more;
                self.continuation.grant();
                let reached = self.terms.continuation.filter(|further| self.terms.solution >= further.max);
                self.terms.solution_by = reached.map_or(LimitedBy::Money, |further| further.by);
            }
            Err(reason) => self.continuation.deny(reason),
        }
    }

    /// True if the call that failed was to continue an answer, and nothing has come of it: what is there is an answer, if a
    /// shorter one. Where no money was reserved for that call alone, only a refusal ends the answer so: any other failure may be
    /// tried again from the beginning.
    pub fn may_keep_partial(&self, failure: &Failure) -> bool {
        self.continuation.is_pending()
            && (self.terms.continuation.is_some() || failure.fault == Fault::Caller)
    }

    /// The call that was to continue the answer failed: what is there is the answer.
    pub fn keep_partial(&mut self) -> ChoiceStep {
        self.continuation.set_pending(false);
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::BrokenOff, ChoiceEnd::broken_off(SolutionStopReason::Upstream))
    }

    /// The limit broke off the answer, and another call is paid for.
    pub(super) fn resume_answer(&mut self) -> ChoiceStep {
        let mut text = self.flush_repeat_filter();
        text += &self.enforcer.release().unwrap_or_default();
        self.observe_answer(&text);
        let shown = self.shown_text(&text);
        if self.stop_filter.stopped_by().is_some() {
            return self.finalize(shown, PartEnd::Completed, ChoiceEnd::STOPPED);
        }
        if !self.thought.text.is_empty() {
            let thought = Thought { closed: true, ..std::mem::take(&mut self.thought) };
            self.continuation.set_prior_thought(&Arc::new(thought));
        }
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far()).max(Tokens(1));
        self.account.next_part(PartEnd::Completed);
        self.thinks = false;
        let answer = self.continuation.split_trailing_blank(&self.answer_so_far);
        let part = self.continuing_part(self.continuation.prior_thought(), answer, solution);
        ChoiceStep::GoOn(visible_answer(shown), part)
    }

    /// The thought closed by itself, and its limit broke off the answer that followed: the rest is asked for.
    pub(super) fn continue_answer(&mut self, ending: GenerationEnd) -> ChoiceStep {
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far());
        if solution == Tokens::ZERO || self.enforcer.withholds() {
            return self.conclude(ending);
        }
        let thought = self.close_thought(ThinkingStopReason::Closed, PartEnd::Completed);
        ChoiceStep::Call(self.continuing_part(thought, self.answer_so_far.clone(), solution))
    }

    /// The part that continues this answer behind this thought.
    pub(super) fn continuing_part(
        &mut self,
        thought: Arc<Thought>,
        answer: String,
        solution: Tokens,
    ) -> GenerationPart {
        self.continuation.set_pending(true);
        self.repeat_filter = Some(RepeatFilter::of(&self.answer_so_far, self.has_stray_tags));
        self.prepare_part(GenerationPart::Solution { thought, answer, solution })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMIT, STOP_WORD, answer, terms, thought, usage};
    use super::*;
    use stint_types::catalog::EnforcementClass;
    use stint_types::chat::{ChoiceEvent, FinishReason};

    /// A choice with room for 8 tokens because money is short, and for 20 otherwise.
    fn short(class: EnforcementClass, thinking: u64) -> ChoiceStateMachine {
        let further = Some(ContinuationLimit { max: Tokens(20), by: LimitedBy::Caller });
        let terms = super::super::ChoiceTerms {
            continuation: further,
            solution_by: LimitedBy::Money,
            stop: Vec::new(),
            ..terms(class, thinking, 8)
        };
        let mut phases = ChoiceStateMachine::new(terms);
        phases.begin();
        phases
    }

    fn need(read: u64, limit: u64) -> Option<ContinuationNeed> {
        Some(ContinuationNeed { read: Tokens(read), limit: Tokens(limit), max: Tokens(20) })
    }

    fn resumed(answer: &str, solution: u64) -> GenerationPart {
        let thought = Thought::default().into();
        GenerationPart::Solution { thought, answer: answer.to_owned(), solution: Tokens(solution) }
    }

    #[test]
    fn an_answer_goes_on_as_far_as_is_paid_for_and_says_what_ended_it() {
        let mut phases = short(EnforcementClass::Native, 0);
        assert_eq!(
            phases.on_piece(answer("one two ", 0)),
            ChoiceStep::Show(ChoiceEvent::Answer("one two ".into()))
        );
        assert_eq!(phases.on_piece(usage(100, 8, Some(0))), ChoiceStep::Continue);
        assert_eq!(phases.continuation_need(&STOP_WORD), None);
        assert_eq!(phases.continuation_need(&LIMIT), need(100 + 8 + 5, 8));
        phases.apply_grant(Ok(Tokens(8)));
        assert_eq!(phases.on_piece(LIMIT), ChoiceStep::GoOn(None, resumed("one two", 8)));
        let failure = Failure::new(Fault::Backend, "gone");
        assert!(phases.may_keep_partial(&failure));
        assert_eq!(
            phases.on_piece(answer(" three", 0)),
            ChoiceStep::Show(ChoiceEvent::Answer("three".into()))
        );
        assert!(!phases.may_keep_partial(&failure));
        assert_eq!(phases.on_piece(usage(107, 8, Some(0))), ChoiceStep::Continue);
        assert_eq!(phases.continuation_need(&LIMIT), need(100 + 16 + 5, 16));
        phases.apply_grant(Ok(Tokens(4)));
        assert_eq!(phases.on_piece(LIMIT), ChoiceStep::GoOn(None, resumed("one two three", 4)));
        assert_eq!(
            phases.on_piece(answer(" four", 0)),
            ChoiceStep::Show(ChoiceEvent::Answer(" four".into()))
        );
        assert_eq!(phases.on_piece(usage(113, 4, Some(0))), ChoiceStep::Continue);
        assert_eq!(phases.continuation_need(&LIMIT), None, "now it is the caller's limit");
        assert_eq!(phases.on_piece(LIMIT), ChoiceStep::Finish(None, FinishReason::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution, spent.input(), spent.calls.len()), (Tokens(20), Tokens(320), 3));
        assert_eq!((spent.solution_ended, spent.estimated), (SolutionStopReason::Caller, false));
    }

    #[test]
    fn it_stands_behind_the_thought_that_was_before_it() {
        let mut phases = short(EnforcementClass::Continue, 4);
        phases.on_piece(thought("hm", 3));
        phases.on_piece(usage(100, 3, None));
        let ChoiceStep::Call(GenerationPart::Solution { thought: behind, .. }) = phases.on_piece(LIMIT)
        else {
            panic!("no answer")
        };
        phases.on_piece(answer("one", 0));
        phases.on_piece(usage(108, 8, None));
        assert_eq!(phases.continuation_need(&LIMIT), need(100 + 3 + 8 + 5, 8));
        phases.apply_grant(Ok(Tokens(8)));
        let part = GenerationPart::Solution { thought: behind, answer: "one".into(), solution: Tokens(8) };
        assert_eq!(phases.on_piece(LIMIT), ChoiceStep::GoOn(None, part));
    }

    #[test]
    fn where_none_is_paid_for_it_says_why() {
        for ended in [SolutionStopReason::Money, SolutionStopReason::Ledger] {
            let mut phases = short(EnforcementClass::Native, 0);
            phases.on_piece(answer("one two", 0));
            phases.on_piece(usage(100, 8, Some(0)));
            phases.apply_grant(Err(ended));
            assert_eq!(phases.on_piece(LIMIT), ChoiceStep::Finish(None, FinishReason::Length));
            assert_eq!(phases.spent().solution_ended, ended);
        }
    }

    #[test]
    fn where_the_call_fails_what_is_there_is_the_answer() {
        let mut phases = short(EnforcementClass::Native, 0);
        phases.on_piece(answer("one two", 0));
        phases.on_piece(usage(100, 8, Some(0)));
        phases.apply_grant(Ok(Tokens(8)));
        phases.on_piece(LIMIT);
        phases.mark_refused();
        assert_eq!(phases.keep_partial(), ChoiceStep::Finish(None, FinishReason::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution_ended, spent.output()), (SolutionStopReason::Upstream, Tokens(8)));
        assert_eq!((spent.input(), spent.estimated), (Tokens(100), false));
    }

    #[test]
    fn an_answer_that_began_under_the_limit_of_its_thought_stays_where_its_rest_is_refused() {
        let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Continue, 4, 8));
        phases.begin();
        phases.on_piece(answer("one two", 0));
        phases.on_piece(usage(100, 4, Some(0)));
        assert!(matches!(phases.on_piece(LIMIT), ChoiceStep::Call(GenerationPart::Solution { .. })));
        phases.mark_refused();
        assert!(phases.may_keep_partial(&Failure::new(Fault::Caller, "no prefix here")));
        assert!(!phases.may_keep_partial(&Failure::new(Fault::Backend, "gone")), "it is tried again");
        assert_eq!(phases.keep_partial(), ChoiceStep::Finish(None, FinishReason::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution_ended, spent.output()), (SolutionStopReason::Upstream, Tokens(4)));
        assert_eq!(spent.input(), Tokens(100), "the refused call is not billed");
    }

    #[test]
    fn an_end_far_from_its_limit_is_somebody_elses() {
        let mut phases = short(EnforcementClass::Native, 0);
        phases.terms.solution = Tokens(19);
        phases.on_piece(answer("one two", 0));
        phases.on_piece(usage(100, 8, Some(0)));
        assert_eq!(phases.continuation_need(&LIMIT), None);
    }
}
