//! Answers that money alone broke off, gone on with in another call. Their reader sees no seam.

use crate::backend::{Ending, Failure, Fault, Part, Piece, Thought};
use crate::catalog::{Further, LimitedBy, SolutionEnded};
use crate::chat::Finish;
use crate::units::Tokens;

use super::super::account::Close;
use super::super::further::Need;
use super::repeat::Repeat;
use super::{Phases, State, Step};

/// An answer that ends so many tokens before its limit, or one part in so many, was ended by it: not all count alike.
const NEAR: (u64, u64) = (8, 8);

/// What is known of the rest of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest {
    /// The thought that stands before the answer, where one was resumed from.
    behind: Thought,
    /// Another call is paid for.
    granted: bool,
    /// Why none is.
    denied: Option<SolutionEnded>,
    /// Another call was made, of which nothing has come.
    waits: bool,
    /// The blank that the answer had ended with, which is not sent: whoever goes on writes it again.
    blank: String,
}

impl Rest {
    /// The answer is asked for behind this thought.
    pub(super) fn follows(&mut self, thought: &Thought) {
        self.behind.clone_from(thought);
    }

    /// A call that goes on with the answer is made, and nothing has come of it.
    pub(super) fn waits(&mut self) {
        self.waits = true;
    }

    /// Why there is no other call, where one was asked for.
    pub(super) fn denied(&self) -> Option<SolutionEnded> {
        self.denied
    }
}

impl Phases {
    /// What another call needs, where this piece is the end that money alone sets to an answer.
    pub fn needs_more(&self, piece: &Piece) -> Option<Need> {
        let (Further { most, .. }, limit) = (self.terms.further?, self.terms.solution);
        if *piece != Piece::End(Ending::Limit) || self.terms.solution_by != LimitedBy::Money {
            return None;
        }
        let answers = self.state == State::Solution && !self.tool_calls && !self.said.trim().is_empty();
        let so_far = self.account.solution_so_far();
        let is_used_up = so_far + Tokens(so_far.0 / NEAR.1 + NEAR.0) >= limit;
        let ended = self.answer.stopped_by().is_some() || !self.holds_limit();
        if !answers || !is_used_up || ended || limit >= most {
            return None;
        }
        let thinking = self.spent().thinking;
        let read = self.terms.prompt + thinking + so_far.max(limit) + self.terms.overhead;
        Some(Need { read, limit, most })
    }

    /// So many more tokens of the answer are paid for, or why none are.
    pub fn granted(&mut self, granted: Result<Tokens, SolutionEnded>) {
        match granted {
            Ok(more) => {
                self.terms.solution += more;
                self.rest.granted = true;
                let reached = self.terms.further.filter(|further| self.terms.solution >= further.most);
                self.terms.solution_by = reached.map_or(LimitedBy::Money, |further| further.by);
            }
            Err(ended) => self.rest.denied = Some(ended),
        }
    }

    /// True where the call that failed was to go on with an answer, and nothing has come of it: what is there is an answer, if a
    /// shorter one. Where no money was set aside for that call alone, only a refusal ends the answer so: any other failure may be
    /// tried again from the beginning.
    pub fn may_stay(&self, failure: &Failure) -> bool {
        self.rest.waits && (self.terms.further.is_some() || failure.fault == Fault::Caller)
    }

    /// The call that was to go on failed: what is there is the answer.
    pub fn stay(&mut self) -> Step {
        self.rest.waits = false;
        let rest = self.answer.rest();
        self.over(rest, Close::BrokenOff, (SolutionEnded::Upstream, Finish::Length))
    }

    /// True once another call is paid for.
    pub(super) fn may_go_further(&mut self) -> bool {
        std::mem::take(&mut self.rest.granted)
    }

    /// The limit broke off the answer, and another call is paid for.
    pub(super) fn go_further(&mut self) -> Step {
        let repeated = self.repeat.as_mut().map(Repeat::rest).unwrap_or_default();
        let mut text = self.pass(&repeated);
        text += &self.release().unwrap_or_default();
        self.look_at(&text);
        let shown = self.answer_shows(&text);
        if self.answer.stopped_by().is_some() {
            return self.over(shown, Close::Ended, (SolutionEnded::Stop, Finish::Stop));
        }
        if !self.thought.text.is_empty() {
            self.rest.behind = Thought { closed: true, ..std::mem::take(&mut self.thought) };
        }
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far()).max(Tokens(1));
        self.account.go_on(Close::Ended);
        (self.thinks, self.rest.waits) = (false, true);
        self.repeat = Some(Repeat::of(&self.said, self.tagged));
        let (answer, thought) = (self.said.trim_end().to_owned(), self.rest.behind.clone());
        self.rest.blank = self.said[answer.len()..].to_owned();
        let part = self.call_for(Part::Solution { thought, answer, solution });
        Step::GoOn(super::shown(shown), part)
    }

    /// The text without the blank that its reader has already.
    pub(super) fn unblanked<'t>(&mut self, text: &'t str) -> &'t str {
        self.rest.waits &= text.is_empty();
        let mut text = text;
        while let (Some(had), Some(next)) = (self.rest.blank.chars().next(), text.chars().next()) {
            if had != next {
                self.rest.blank.clear();
                break;
            }
            self.rest.blank.remove(0);
            text = &text[next.len_utf8()..];
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMIT, STOP_WORD, answer, terms, thought, usage};
    use super::*;
    use crate::catalog::Class;
    use crate::chat::Event;

    /// A choice of 8 tokens for want of money, and of 20 otherwise.
    fn short(class: Class, thinking: u64) -> Phases {
        let further = Some(Further { most: Tokens(20), by: LimitedBy::Caller });
        let terms = super::super::Terms {
            further,
            solution_by: LimitedBy::Money,
            stop: Vec::new(),
            ..terms(class, thinking, 8)
        };
        let mut phases = Phases::new(terms);
        phases.begin();
        phases
    }

    fn need(read: u64, limit: u64) -> Option<Need> {
        Some(Need { read: Tokens(read), limit: Tokens(limit), most: Tokens(20) })
    }

    fn resumed(answer: &str, solution: u64) -> Part {
        let thought = Thought::default();
        Part::Solution { thought, answer: answer.to_owned(), solution: Tokens(solution) }
    }

    #[test]
    fn an_answer_goes_on_as_far_as_is_paid_for_and_says_what_ended_it() {
        let mut phases = short(Class::Native, 0);
        assert_eq!(phases.on(answer("one two ", 0)), Step::Show(Event::Answer("one two ".into())));
        assert_eq!(phases.on(usage(100, 8, Some(0))), Step::Quiet);
        assert_eq!(phases.needs_more(&STOP_WORD), None);
        assert_eq!(phases.needs_more(&LIMIT), need(100 + 8 + 5, 8));
        phases.granted(Ok(Tokens(8)));
        assert_eq!(phases.on(LIMIT), Step::GoOn(None, resumed("one two", 8)));
        let failure = Failure::new(Fault::Backend, "gone");
        assert!(phases.may_stay(&failure));
        assert_eq!(phases.on(answer(" three", 0)), Step::Show(Event::Answer("three".into())));
        assert!(!phases.may_stay(&failure));
        assert_eq!(phases.on(usage(107, 8, Some(0))), Step::Quiet);
        assert_eq!(phases.needs_more(&LIMIT), need(100 + 16 + 5, 16));
        phases.granted(Ok(Tokens(4)));
        assert_eq!(phases.on(LIMIT), Step::GoOn(None, resumed("one two three", 4)));
        assert_eq!(phases.on(answer(" four", 0)), Step::Show(Event::Answer(" four".into())));
        assert_eq!(phases.on(usage(113, 4, Some(0))), Step::Quiet);
        assert_eq!(phases.needs_more(&LIMIT), None, "now it is the caller's limit");
        assert_eq!(phases.on(LIMIT), Step::Finish(None, Finish::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution, spent.input(), spent.calls.len()), (Tokens(20), Tokens(320), 3));
        assert_eq!((spent.solution_ended, spent.estimated), (SolutionEnded::Caller, false));
    }

    #[test]
    fn it_stands_behind_the_thought_that_was_before_it() {
        let mut phases = short(Class::Continue, 4);
        phases.on(thought("hm", 3));
        phases.on(usage(100, 3, None));
        let Step::Call(Part::Solution { thought: behind, .. }) = phases.on(LIMIT) else {
            panic!("no answer")
        };
        phases.on(answer("one", 0));
        phases.on(usage(108, 8, None));
        assert_eq!(phases.needs_more(&LIMIT), need(100 + 3 + 8 + 5, 8));
        phases.granted(Ok(Tokens(8)));
        let part = Part::Solution { thought: behind, answer: "one".into(), solution: Tokens(8) };
        assert_eq!(phases.on(LIMIT), Step::GoOn(None, part));
    }

    #[test]
    fn where_none_is_paid_for_it_says_why() {
        for ended in [SolutionEnded::Money, SolutionEnded::Ledger] {
            let mut phases = short(Class::Native, 0);
            phases.on(answer("one two", 0));
            phases.on(usage(100, 8, Some(0)));
            phases.granted(Err(ended));
            assert_eq!(phases.on(LIMIT), Step::Finish(None, Finish::Length));
            assert_eq!(phases.spent().solution_ended, ended);
        }
    }

    #[test]
    fn where_the_call_fails_what_is_there_is_the_answer() {
        let mut phases = short(Class::Native, 0);
        phases.on(answer("one two", 0));
        phases.on(usage(100, 8, Some(0)));
        phases.granted(Ok(Tokens(8)));
        phases.on(LIMIT);
        phases.refused();
        assert_eq!(phases.stay(), Step::Finish(None, Finish::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution_ended, spent.output()), (SolutionEnded::Upstream, Tokens(8)));
        assert_eq!((spent.input(), spent.estimated), (Tokens(100), false));
    }

    #[test]
    fn an_answer_that_began_under_the_limit_of_its_thought_stays_where_its_rest_is_refused() {
        let mut phases = Phases::new(terms(Class::Continue, 4, 8));
        phases.begin();
        phases.on(answer("one two", 0));
        phases.on(usage(100, 4, Some(0)));
        assert!(matches!(phases.on(LIMIT), Step::Call(Part::Solution { .. })));
        phases.refused();
        assert!(phases.may_stay(&Failure::new(Fault::Caller, "no prefix here")));
        assert!(!phases.may_stay(&Failure::new(Fault::Backend, "gone")), "it is tried again");
        assert_eq!(phases.stay(), Step::Finish(None, Finish::Length));
        let spent = phases.spent();
        assert_eq!((spent.solution_ended, spent.output()), (SolutionEnded::Upstream, Tokens(4)));
        assert_eq!(spent.input(), Tokens(100), "the refused call is not billed");
    }

    #[test]
    fn an_end_far_from_its_limit_is_somebody_elses() {
        let mut phases = short(Class::Native, 0);
        phases.terms.solution = Tokens(19);
        phases.on(answer("one two", 0));
        phases.on(usage(100, 8, Some(0)));
        assert_eq!(phases.needs_more(&LIMIT), None);
    }
}
