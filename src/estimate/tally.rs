//! One pass over a text, in which everybody who counts something counts it.

use super::grams::Pairs;
use super::lexeme::Lexemes;
use super::{classify, features, surface};

/// What one pass counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// For the coefficients of measured models.
    pub plain: features::Counts,
    /// For the shipped prior.
    pub surface: surface::Counts,
    /// For the class of the task.
    pub cues: classify::Cues,
}

impl Tally {
    /// Counts, and calls with the hash of every lexeme and every pair of neighbours.
    #[inline]
    pub(super) fn of(text: &str, mut gram: impl FnMut(u64)) -> Tally {
        let mut tally = Tally::default();
        let mut pairs = Pairs::default();
        for lexeme in Lexemes::of(text) {
            tally.plain.add(&lexeme);
            tally.surface.add(&lexeme);
            tally.cues.add(&lexeme);
            pairs.add(&lexeme, &mut gram);
        }
        tally
    }
}
