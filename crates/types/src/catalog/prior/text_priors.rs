//! Both priors of a text, and their grams in one table.

use super::lengths::{LengthGram, LengthPrior};
use super::weights::{Gram, Prior};

/// What is known of the gram in a place. It never crosses a line of memory, so that one look tells both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct GramPair {
    /// By the general prior.
    pub general: Gram,
    /// By the prior of lengths.
    pub length: LengthGram,
}

/// What a text's words, and what is counted in it, say of models' answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextPriors {
    general: Prior,
    lengths: LengthPrior,
    /// By place: their grams once more.
    grams: Vec<GramPair>,
}

impl TextPriors {
    /// These two.
    ///
    /// # Panics
    /// When both know grams, in different numbers of places.
    pub fn of(general: Prior, lengths: LengthPrior) -> TextPriors {
        let places = general.grams.len().max(lengths.grams.len());
        for of_one in [general.grams.len(), lengths.grams.len()] {
            assert!([0, places].contains(&of_one), "a gram must have the same place in both priors");
        }
        let pair = |place: usize| GramPair {
            general: general.grams.get(place).copied().unwrap_or_default(),
            length: lengths.grams.get(place).copied().unwrap_or_default(),
        };
        let grams = (0..places).map(pair).collect();
        TextPriors { general, lengths, grams }
    }

    /// The same with another general prior.
    #[must_use]
    pub fn with_general(&self, general: Prior) -> TextPriors {
        TextPriors::of(general, self.lengths.clone())
    }

    /// The same with another prior of lengths.
    #[must_use]
    pub fn with_lengths(&self, lengths: LengthPrior) -> TextPriors {
        TextPriors::of(self.general.clone(), lengths)
    }

    /// What many models' answers say of a question.
    pub fn general(&self) -> &Prior {
        &self.general
    }

    /// What a text says of the lengths of thoughts and answers.
    pub fn lengths(&self) -> &LengthPrior {
        &self.lengths
    }

    /// What both know of grams, by place.
    pub fn grams(&self) -> &[GramPair] {
        &self.grams
    }
}
