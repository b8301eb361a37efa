//! Whether a model's text begins inside its thought, as its template has it: what its target's answers say of that.
//!
//! The name of a model tells how its template begins, not what its server does with the thought. One that takes thoughts out of
//! the text, or keeps them to itself, leaves an answer that no tag precedes. A caller can have a model write a tag, or none, so
//! one account's answers alone change little.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ShownBy;

/// After so many answers in a row that show the opposite, a target's text is taken to begin otherwise: where they are of several
/// accounts, or of one.
const ROW_OF_SEVERAL: u32 = 2;
const ROW_OF_ONE: u32 = 3;
/// The same where there are no accounts, and so nobody else: to begin with the answer, or inside the thought again.
const CLOSING_ROW: u32 = 2;
const OPENING_ROW: u32 = 1;

/// The account that an answer is for, where there are accounts.
pub(super) type AnswerOwner = Option<Arc<str>>;

/// What one target's answers have shown so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ImplicitThought(Arc<Mutex<OpeningEvidence>>);

/// How a text is taken to begin, and what speaks against that.
#[derive(Debug, Default)]
struct OpeningEvidence {
    /// True while it is taken to begin with the answer.
    is_closed: bool,
    /// So many answers in a row have shown the opposite.
    row: u32,
    /// Whose they are.
    row_owners: ShownBy<Arc<str>>,
}

impl ImplicitThought {
    /// True while its text is taken to begin inside the thought.
    pub(super) fn is_open(&self) -> bool {
        !self.lock().is_closed
    }

    /// The thought came by another way than the text.
    fn saw_separate_thought(&self) {
        *self.lock() = OpeningEvidence { is_closed: true, ..OpeningEvidence::default() };
    }

    /// The tag that closes a thought came in the text.
    fn saw_end_tag(&self, owner: &AnswerOwner) {
        self.lock().note(false, owner);
    }

    /// The text came to its end, and no tag had closed a thought.
    fn saw_no_end_tag(&self, owner: &AnswerOwner) {
        self.lock().note(true, owner);
    }

    fn lock(&self) -> MutexGuard<'_, OpeningEvidence> {
        // It is whole between any two statements, so a poisoned lock is as good as another.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpeningEvidence {
    /// An answer has shown how its text begins.
    fn note(&mut self, is_closed: bool, owner: &AnswerOwner) {
        if is_closed == self.is_closed {
            self.row = 0;
            return;
        }
        if self.row == 0 {
            self.row_owners = ShownBy::default();
        }
        self.row += 1;
        self.row_owners.record(owner.clone());
        let wanted = match owner {
            Some(_) if self.row_owners.holds_for_all() => ROW_OF_SEVERAL,
            Some(_) => ROW_OF_ONE,
            None if is_closed => CLOSING_ROW,
            None => OPENING_ROW,
        };
        if self.row >= wanted {
            (self.is_closed, self.row) = (is_closed, 0);
        }
    }
}

/// How one answer's text begins, and what it says of the others.
#[derive(Debug)]
pub(super) struct AnswerOpening {
    opening: ImplicitThought,
    /// True while the text is taken for a thought that the template has begun.
    pub(super) is_open: bool,
    /// True once it has shown how such texts begin.
    is_noted: bool,
    end_tag: String,
    owner: AnswerOwner,
}

impl AnswerOpening {
    /// The beginning of a text that the template may have begun as a thought.
    pub(super) fn new(opening: &ImplicitThought, end_tag: &str, owner: AnswerOwner) -> AnswerOpening {
        let (opening, end_tag) = (opening.clone(), end_tag.to_owned());
        AnswerOpening { is_open: opening.is_open(), is_noted: false, opening, end_tag, owner }
    }

    /// The thought came by another way. Tags in the text are the model's words then.
    pub(super) fn thought_is_separate(&mut self) {
        self.is_open = false;
        if !std::mem::replace(&mut self.is_noted, true) {
            self.opening.saw_separate_thought();
        }
    }

    /// The tag closed the thought.
    pub(super) fn thought_closed(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.note_end_tag();
        }
    }

    /// Some text is shown as the answer. A tag in it means that thoughts come with the text after all.
    pub(super) fn check_answer(&mut self, text: &str) {
        if !self.is_open && text.contains(&self.end_tag) {
            self.note_end_tag();
        }
    }

    /// The text is over. True if all of it was the answer, since no thought was closed in it: where the model was done, or
    /// where its thought was counted and so known to its server, which took it out. `told` is that count.
    pub(super) fn text_ended(&mut self, stops: bool, told: Option<u64>) -> bool {
        let counted = told.is_some_and(|tokens| tokens > 0);
        if !(stops || counted) || std::mem::replace(&mut self.is_noted, true) {
            return false;
        }
        if self.is_open && told.is_some() {
            self.opening.saw_separate_thought();
        } else {
            self.opening.saw_no_end_tag(&self.owner);
        }
        self.is_open
    }

    fn note_end_tag(&mut self) {
        if !std::mem::replace(&mut self.is_noted, true) {
            self.opening.saw_end_tag(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "</think>";

    /// Has answers end whose texts have a tag or not, each of an account (of none: ""), and tells if the next begins in a thought.
    fn after(target: &ImplicitThought, answers: &[(&str, bool)]) -> bool {
        for (owner, has_tag) in answers {
            let owner = (!owner.is_empty()).then(|| (*owner).into());
            let mut answer = AnswerOpening::new(target, TAG, owner);
            if *has_tag {
                answer.thought_closed();
                answer.check_answer(TAG);
            }
            answer.text_ended(true, None);
        }
        target.is_open()
    }

    fn closed() -> ImplicitThought {
        let target = ImplicitThought::default();
        AnswerOpening::new(&target, TAG, None).thought_is_separate();
        target
    }

    #[test]
    fn the_answers_of_several_accounts_or_three_of_one_show_how_a_text_begins() {
        let (tag, none) = (true, false);
        assert!(after(&ImplicitThought::default(), &[("a", none), ("a", none)]));
        assert!(!after(&ImplicitThought::default(), &[("a", none), ("b", none)]));
        assert!(!after(&ImplicitThought::default(), &[("a", none); 3]));
        assert!(after(&ImplicitThought::default(), &[("a", none), ("b", tag), ("c", none)]));
        assert!(!after(&closed(), &[("a", tag), ("b", none), ("a", tag), ("a", tag)]), "one account's tags");
        assert!(after(&closed(), &[("a", tag), ("b", tag)]));
        assert!(after(&closed(), &[("a", tag); 3]));
    }

    #[test]
    fn without_accounts_two_answers_close_a_text_and_one_opens_it() {
        let target = ImplicitThought::default();
        assert!(after(&target, &[("", false)]));
        assert!(!after(&target, &[("", false)]));
        assert!(after(&target, &[("", true)]));
    }

    #[test]
    fn a_tag_in_an_answer_whose_thought_came_apart_shows_nothing() {
        let target = closed();
        for owner in ["a", "b", "c"] {
            let mut answer = AnswerOpening::new(&target, TAG, Some(owner.into()));
            answer.thought_is_separate();
            answer.check_answer(TAG);
            assert!(!answer.text_ended(true, None) && !target.is_open());
        }
    }
}
