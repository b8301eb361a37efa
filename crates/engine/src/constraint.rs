//! What an answer may be: which tokens may come next. Who knows text says so; the engine asks before each draw.
//!
//! A thought is free. The constraint holds from its closing token on, or from the first token where nothing is thought.

use std::fmt;

use thiserror::Error;

use super::phases::{GeneratedToken, GenerationPhase, PhaseMachine, TokenRole};

/// Says of one answer which tokens may come next.
pub trait TokenConstraint: Send + Sync {
    /// Adds the tokens that may come next. What ends the text is not among them.
    ///
    /// # Errors
    /// Why that cannot be said. The generation ends by it.
    fn allow_next(&mut self, allowed: &mut TokenSet) -> Result<(), ConstraintError>;

    /// Whether the text may end here.
    ///
    /// # Errors
    /// Why that cannot be said. The generation ends by it.
    fn may_end(&mut self) -> Result<bool, ConstraintError>;

    /// One more token of the answer.
    ///
    /// # Errors
    /// Where it is none that was allowed.
    fn accept(&mut self, id: u32) -> Result<(), ConstraintError>;

    /// The same constraint for another answer, as far as it has come.
    fn boxed_clone(&self) -> Box<dyn TokenConstraint>;
}

/// Why an answer could not be held to its form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ConstraintError(pub String);

/// The constraint of one answer.
pub struct AnswerConstraint(Box<dyn TokenConstraint>);

impl AnswerConstraint {
    /// At the beginning of an answer.
    #[must_use]
    pub fn new(constraint: Box<dyn TokenConstraint>) -> Self {
        Self(constraint)
    }
}

impl Clone for AnswerConstraint {
    fn clone(&self) -> Self {
        Self(self.0.boxed_clone())
    }
}

impl fmt::Debug for AnswerConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerConstraint")
    }
}

/// Tokens, one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    words: Vec<u32>,
    vocab: u32,
}

impl TokenSet {
    /// No token of so many.
    #[must_use]
    pub fn empty(vocab: u32) -> Self {
        Self { words: vec![0; vocab.div_ceil(32) as usize], vocab }
    }

    /// Adds a token, if there is such a one.
    pub fn insert(&mut self, id: u32) {
        self.change(id, |word, bit| word | bit);
    }

    /// Takes a token out.
    pub fn remove(&mut self, id: u32) {
        self.change(id, |word, bit| word & !bit);
    }

    /// Adds the tokens whose bits are set, the lowest first. Bits beyond the vocabulary are none.
    pub fn insert_words(&mut self, words: &[u32]) {
        self.words.iter_mut().zip(words).for_each(|(own, more)| *own |= more);
        let spare = self.vocab % 32;
        if let Some(last) = self.words.last_mut().filter(|_| spare > 0) {
            *last &= (1 << spare) - 1;
        }
    }

    /// Whether a token is in it.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// Whether no token is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    fn change(&mut self, id: u32, with: impl Fn(u32, u32) -> u32) {
        if let Some(word) = self.words.get_mut(id as usize / 32).filter(|_| id < self.vocab) {
            *word = with(*word, 1 << (id % 32));
        }
    }
}

/// The constraint of a generation that runs.
#[derive(Debug)]
pub(crate) struct RunningConstraint {
    constraint: AnswerConstraint,
    /// A token of white space may come next: the model has closed its thought, and most write one there.
    may_be_blank: bool,
}

impl RunningConstraint {
    pub(crate) fn new(constraint: AnswerConstraint) -> Self {
        Self { constraint, may_be_blank: false }
    }

    /// Whether what is drawn next is of the answer, or may be its beginning.
    pub(crate) fn holds_now(machine: &PhaseMachine) -> bool {
        matches!(machine.phase(), GenerationPhase::Idle | GenerationPhase::Solution)
    }

    /// The tokens that may be drawn next.
    pub(crate) fn allowed(
        &mut self,
        machine: &PhaseMachine,
        vocab: u32,
    ) -> Result<TokenSet, ConstraintError> {
        let mut allowed = TokenSet::empty(vocab);
        self.constraint.0.allow_next(&mut allowed)?;
        let thinking = machine.phases().thinking.as_ref();
        if let Some(thinking) = thinking.filter(|_| self.may_be_blank) {
            thinking.blanks.iter().for_each(|id| allowed.insert(*id));
        }
        if machine.phase() == GenerationPhase::Idle {
            thinking.and_then(|thinking| thinking.start).into_iter().for_each(|id| allowed.insert(id));
        }
        machine.banned().into_iter().flatten().for_each(|id| allowed.remove(id));
        if self.constraint.0.may_end()? {
            machine.eos().iter().for_each(|id| allowed.insert(*id));
        }
        if allowed.is_empty() {
            return Err(ConstraintError("no token of the model can go on here".into()));
        }
        Ok(allowed)
    }

    /// A token was drawn.
    pub(crate) fn accept(
        &mut self,
        step: GeneratedToken,
        machine: &PhaseMachine,
    ) -> Result<(), ConstraintError> {
        match step.role {
            TokenRole::Solution => {
                let may_be_blank = std::mem::take(&mut self.may_be_blank);
                let blanks = machine.phases().thinking.as_ref().map(|thinking| &thinking.blanks);
                let is_blank = blanks.is_some_and(|blanks| blanks.binary_search(&step.id).is_ok());
                if !(may_be_blank && is_blank) {
                    return self.constraint.0.accept(step.id);
                }
            }
            TokenRole::Tag => self.may_be_blank = true,
            // What may become a tag of text was allowed as the answer's beginning.
            TokenRole::Blank if machine.spells_tags() => return self.constraint.0.accept(step.id),
            TokenRole::Blank | TokenRole::Thought | TokenRole::HandOff | TokenRole::End => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_tokens_that_were_put_in_and_none_beyond_the_vocabulary() {
        let mut set = TokenSet::empty(40);
        set.insert_words(&[1, u32::MAX, 7]);
        [3, 40, 63].into_iter().for_each(|id| set.insert(id));
        set.remove(39);
        let ids: Vec<_> = (0..100).filter(|id| set.contains(*id)).collect();
        assert_eq!(ids, [0, 3, 32, 33, 34, 35, 36, 37, 38]);
        assert!(!set.is_empty() && TokenSet::empty(40).is_empty());
    }
}
