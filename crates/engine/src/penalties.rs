//! What makes single tokens of a generation less likely or more: penalties for tokens that came, and biases that were stated.
//! Kept on the host, which knows every token; the device is told of the changes before it draws.

use std::collections::HashMap;
use std::sync::Arc;

use super::ops::LogitChange;

/// Tokens that a generation may have a bias for.
pub const BIASES_MAX: usize = 1024;

/// Penalties and biases of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenPenalties {
    /// Taken off the logit of every token that was generated.
    pub presence: f32,
    /// Taken off for each time that a token was generated.
    pub frequency: f32,
    /// By this the logit of every token of the prompt and of what was generated is divided, or multiplied if it is negative.
    pub repetition: f32,
    /// Added to the logits of these tokens.
    pub biases: Arc<[(u32, f32)]>,
}

impl Default for TokenPenalties {
    fn default() -> Self {
        Self { presence: 0.0, frequency: 0.0, repetition: 1.0, biases: [].into() }
    }
}

impl TokenPenalties {
    /// Whether it can be computed with.
    pub(crate) fn is_valid(&self) -> bool {
        let numbers = [self.presence, self.frequency, self.repetition];
        let biases = self.biases.iter().map(|(_, bias)| *bias);
        numbers.into_iter().chain(biases).all(f32::is_finite) && self.repetition > 0.0
    }

    fn lessens_repetition(&self) -> bool {
        (self.repetition - 1.0).abs() > f32::EPSILON
    }

    fn counts_tokens(&self) -> bool {
        self.presence != 0.0 || self.frequency != 0.0 || self.lessens_repetition()
    }
}

/// What is known of one token.
#[derive(Debug, Clone, Copy, Default)]
struct TokenRecord {
    generated: u32,
    was_seen: bool,
    bias: f32,
}

/// The tokens of one text whose logits change.
#[derive(Debug)]
pub(crate) struct LogitChanges {
    penalties: TokenPenalties,
    tokens: HashMap<u32, TokenRecord>,
}

impl LogitChanges {
    pub(crate) fn new(penalties: TokenPenalties, prompt: &[u32]) -> Self {
        let mut tokens = HashMap::<u32, TokenRecord>::new();
        for (id, bias) in penalties.biases.iter() {
            tokens.entry(*id).or_default().bias += bias;
        }
        if penalties.lessens_repetition() {
            prompt.iter().for_each(|id| tokens.entry(*id).or_default().was_seen = true);
        }
        Self { penalties, tokens }
    }

    /// A token was generated.
    pub(crate) fn record(&mut self, id: u32) {
        if self.penalties.counts_tokens() {
            let token = self.tokens.entry(id).or_default();
            token.generated += 1;
            token.was_seen = true;
        }
    }

    /// The changes for what is drawn next, as the pick of this number.
    pub(crate) fn of_pick(&self, pick: u32) -> impl Iterator<Item = LogitChange> {
        self.tokens.iter().map(move |(&token, record)| {
            let TokenPenalties { presence, frequency, repetition, .. } = self.penalties;
            let once = if record.generated > 0 { presence } else { 0.0 };
            #[expect(clippy::cast_precision_loss, reason = "no text has so many tokens")]
            let often = frequency * record.generated as f32;
            let divisor = if record.was_seen { repetition } else { 1.0 };
            LogitChange { pick, token, divisor, less: once + often - record.bias }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(penalties: TokenPenalties, prompt: &[u32], generated: &[u32]) -> Vec<(u32, f32, f32)> {
        let mut changes = LogitChanges::new(penalties, prompt);
        generated.iter().for_each(|id| changes.record(*id));
        let mut all: Vec<_> = changes.of_pick(0).map(|c| (c.token, c.divisor, c.less)).collect();
        all.sort_by_key(|change| change.0);
        all
    }

    #[test]
    fn what_came_is_made_less_likely_and_what_has_a_bias_by_that() {
        let biases: Arc<[_]> = [(7, -5.0), (2, 1.0)].into();
        let penalties =
            TokenPenalties { presence: 0.5, frequency: 0.25, biases, ..TokenPenalties::default() };
        let expected = [(2, 1.0, 0.0), (3, 1.0, 0.75), (7, 1.0, 5.0)];
        assert_eq!(changes(penalties, &[1, 2], &[3, 2, 2]), [(2, 1.0, 0.0), expected[1], expected[2]]);
    }

    #[test]
    fn a_prompt_s_tokens_count_as_repeated_but_not_as_generated() {
        let penalties = TokenPenalties { repetition: 1.5, presence: 1.0, ..TokenPenalties::default() };
        assert_eq!(changes(penalties, &[1], &[3]), [(1, 1.5, 0.0), (3, 1.5, 1.0)]);
    }

    #[test]
    fn without_penalties_nothing_changes() {
        assert_eq!(changes(TokenPenalties::default(), &[1, 2], &[3]), []);
    }
}
