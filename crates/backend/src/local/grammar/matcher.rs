//! A grammar on its way through one answer.

use llguidance::Matcher;

use stint_engine::{ConstraintError, TokenConstraint, TokenSet};

/// Where an answer stands in its grammar.
#[derive(Clone)]
pub(super) struct GrammarMatcher(Matcher);

impl GrammarMatcher {
    /// At the beginning.
    pub(super) fn new(matcher: Matcher) -> GrammarMatcher {
        GrammarMatcher(matcher)
    }

    /// The same for another answer, which shares nothing with this one.
    pub(super) fn fork(&self) -> GrammarMatcher {
        GrammarMatcher(self.0.deep_clone())
    }

    /// What is wrong with it. An answer's text has no place in it.
    fn fault(&self) -> ConstraintError {
        ConstraintError(format!("its grammar cannot go on ({})", self.0.stop_reason()))
    }
}

impl TokenConstraint for GrammarMatcher {
    fn allow_next(&mut self, allowed: &mut TokenSet) -> Result<(), ConstraintError> {
        if !self.0.is_error() && self.0.is_stopped() {
            return Ok(());
        }
        let mask = self.0.compute_mask().map_err(|_| self.fault())?;
        allowed.insert_words(mask.as_slice());
        Ok(())
    }

    fn may_end(&mut self) -> Result<bool, ConstraintError> {
        if !self.0.is_error() && self.0.is_stopped() {
            return Ok(true);
        }
        self.0.is_accepting().map_err(|_| self.fault())
    }

    fn accept(&mut self, id: u32) -> Result<(), ConstraintError> {
        self.0.consume_token(id).map_err(|_| self.fault())
    }

    fn boxed_clone(&self) -> Box<dyn TokenConstraint> {
        Box::new(self.fork())
    }
}
