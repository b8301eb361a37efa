//! Whether a model's text begins inside its thought, as its template has it: what its target's answers say of that.
//!
//! The name of a model tells how its template begins, not what its server does with the thought. One that takes thoughts out of
//! the text, or keeps them to itself, leaves an answer that no tag precedes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// After so many answers in a row without an end of their thought, a target's text is taken to begin with the answer.
const UNCLOSED_MAX: u32 = 2;

/// What one target's answers have shown so far: how many in a row had no end of a thought.
#[derive(Debug, Clone, Default)]
pub(super) struct ImplicitThought(Arc<AtomicU32>);

impl ImplicitThought {
    /// True while its text is taken to begin inside the thought.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) < UNCLOSED_MAX
    }

    /// The tag that closes a thought came in the text.
    pub(super) fn saw_end_tag(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The thought came by another way than the text.
    pub(super) fn saw_separate_thought(&self) {
        self.0.store(UNCLOSED_MAX, Ordering::Relaxed);
    }

    /// The text came to its end, and no tag had closed a thought.
    pub(super) fn saw_no_end_tag(&self) {
        let next = self.0.load(Ordering::Relaxed).saturating_add(1);
        self.0.store(next, Ordering::Relaxed);
    }
}

/// How one answer's text begins, and what it says of the others.
#[derive(Debug)]
pub(super) struct AnswerOpening {
    opening: ImplicitThought,
    /// True while the text is taken for a thought that the template has begun.
    pub(super) is_open: bool,
    end_tag: String,
}

impl AnswerOpening {
    /// The beginning of a text that the template may have begun as a thought.
    pub(super) fn new(opening: &ImplicitThought, end_tag: &str) -> AnswerOpening {
        let (opening, end_tag) = (opening.clone(), end_tag.to_owned());
        AnswerOpening { is_open: opening.is_open(), opening, end_tag }
    }

    /// The thought came by another way.
    pub(super) fn thought_is_separate(&mut self) {
        self.is_open = false;
        self.opening.saw_separate_thought();
    }

    /// The tag closed the thought.
    pub(super) fn thought_closed(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.opening.saw_end_tag();
        }
    }

    /// Some text is shown as the answer. A tag in it means that thoughts come with the text after all.
    pub(super) fn check_answer(&self, text: &str) {
        if !self.is_open && text.contains(&self.end_tag) {
            self.opening.saw_end_tag();
        }
    }

    /// The text is over. True if all of it was the answer, since no thought was closed in it: where the model was done, or
    /// where its thought was counted and so known to its server, which took it out. `told` is that count.
    pub(super) fn text_ended(&mut self, stops: bool, told: Option<u64>) -> bool {
        let counted = told.is_some_and(|tokens| tokens > 0);
        if !self.is_open || !(stops || counted) {
            return false;
        }
        if told.is_some() {
            self.opening.saw_separate_thought();
        } else {
            self.opening.saw_no_end_tag();
        }
        true
    }
}
