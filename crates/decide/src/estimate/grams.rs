//! Words, numbers and signs, and pairs of neighbours, as hashes: they need no dictionary.
//!
//! Pieces of words (beginnings and ends of some letters) were tried, and told nothing that these do not.

use stint_types::catalog::{Prior, TRAITS};
use stint_types::units::mix64;

use super::scale::as_number;

/// The most lexemes that are looked at. So many suffice to characterise a question.
pub(super) const LEXEMES_MAX: usize = 4096;
/// Which sums of a `Gram`'s rarity stand for 1.
pub const RARITY_UNIT: f64 = 16.0;

/// What the words of a text say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GramReading {
    /// The sum of the known grams' weights, on each trait, of a text of length 1.
    pub traits: [f64; TRAITS],
    /// The share of the words and pairs that are known.
    pub familiarity: f64,
}

/// The grams of a text, by the hashes of its lexemes: each alone, then each with the one before it.
pub(super) fn grams(lexemes: &[u64]) -> impl Iterator<Item = u64> {
    lexemes.iter().copied().chain(lexemes.windows(2).map(pair))
}

/// The gram of two neighbours.
#[inline]
fn pair(neighbours: &[u64]) -> u64 {
    let [before, whole] = *neighbours else { return 0 };
    mix64(whole ^ before.rotate_left(23))
}

/// Where a gram stands in a table of so many places, a power of two, and its mark there.
#[inline]
pub fn place(gram: u64, places: usize) -> (usize, u8) {
    let [.., mark] = gram.to_le_bytes();
    let place = gram & u64::try_from(places - 1).unwrap_or(0);
    (usize::try_from(place).unwrap_or(0), mark)
}

/// A rarity as the table keeps it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub fn rarity(inverse_frequency: f64) -> u8 {
    (inverse_frequency * RARITY_UNIT).round().clamp(1.0, 255.0) as u8
}

/// Adds up what a prior knows of a text's grams, each counted once; none of a prior that knows no words. A request's text is read
/// by `known_grams`, which finds the same.
pub(super) fn read_grams(prior: &Prior, lexemes: &[u64]) -> Option<GramReading> {
    let places = prior.grams.len();
    let mut is_met = places.is_power_of_two().then(|| vec![false; places])?;
    let (mut weights, mut square, mut known) = ([0_i32; TRAITS], 0_u32, 0);
    for gram in grams(lexemes) {
        let (place, mark) = place(gram, places);
        let kept = prior.grams[place];
        if kept.rarity == 0 || kept.fingerprint != mark {
            continue;
        }
        known += 1;
        if !std::mem::replace(&mut is_met[place], true) {
            square += u32::from(kept.rarity).pow(2);
            weights.iter_mut().zip(kept.weights).for_each(|(sum, weight)| *sum += i32::from(weight));
        }
    }
    let length = f64::from(square).sqrt().max(1.0) / RARITY_UNIT;
    Some(GramReading {
        traits: std::array::from_fn(|i| f64::from(weights[i]) * prior.scales[i] / length),
        familiarity: familiarity(known, lexemes.len()),
    })
}

/// The share of the grams of so many lexemes that are known.
pub(super) fn familiarity(known: usize, lexemes: usize) -> f64 {
    as_number(known) / as_number((2 * lexemes).saturating_sub(1).max(1))
}

/// So many grams are looked up together.
pub(super) const BATCH: usize = 64;

/// Some grams of a text, [`BATCH`] at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct GramBatch<'a> {
    pub grams: &'a [u64],
    /// True if they are lexemes, false if they are pairs.
    pub are_lexemes: bool,
}

/// The lexemes of a text that is being read, until they are enough to be looked up together: a whole text's would have to be
/// allocated, and written to memory.
#[derive(Debug)]
pub(super) struct LexemeBuffer {
    /// The last lexeme that was shown, then those that were not.
    hashes: [u64; BATCH + 1],
    /// Where the next one goes.
    end: usize,
    /// How many were shown.
    shown: usize,
}

impl Default for LexemeBuffer {
    fn default() -> LexemeBuffer {
        LexemeBuffer { hashes: [0; BATCH + 1], end: 1, shown: 0 }
    }
}

impl LexemeBuffer {
    /// Adds a lexeme. It must not be full.
    #[inline(always)]
    pub(super) fn push(&mut self, hash: u64) {
        self.hashes[self.end] = hash;
        self.end += 1;
    }

    /// True if what it holds has to be shown before there is room again.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.end > BATCH
    }

    /// How many lexemes there were so far.
    pub(super) fn count(&self) -> usize {
        self.shown + self.end - 1
    }

    /// Shows what was not shown yet, the lexemes and then the pairs that end with them, and has room again.
    #[inline(always)]
    pub(super) fn show(&mut self, mut look: impl FnMut(GramBatch<'_>)) {
        look(GramBatch { grams: &self.hashes[1..self.end], are_lexemes: true });
        let mut pairs = [0; BATCH];
        // Nothing stands before the first lexeme of a text.
        let neighbours = self.hashes[usize::from(self.shown == 0)..self.end].windows(2);
        let count = neighbours.len();
        pairs.iter_mut().zip(neighbours).for_each(|(gram, neighbours)| *gram = pair(neighbours));
        look(GramBatch { grams: &pairs[..count], are_lexemes: false });
        self.shown = self.count();
        (self.hashes[0], self.end) = (self.hashes[self.end - 1], 1);
    }
}

#[cfg(test)]
mod tests {
    use stint_types::catalog::Gram;

    use super::*;
    use crate::estimate::text::{QuestionText, TextAnalysis};

    fn lexemes(text: &str) -> Vec<u64> {
        let mut lexemes = Vec::new();
        TextAnalysis::with(&QuestionText::question(text), |lexeme| lexemes.push(lexeme));
        lexemes
    }

    fn all(text: &str) -> Vec<u64> {
        grams(&lexemes(text)).collect()
    }

    #[test]
    fn capitals_change_no_gram_and_order_changes_pairs_alone() {
        assert_eq!(all("The larger prime?"), all("the LARGER  prime ?"));
        assert_eq!(all("The larger prime?").len(), 4 + 3);
        let (one, other) = (all("one two"), all("two one"));
        assert_eq!((one[0], one[1]), (other[1], other[0]), "pairs follow the words");
        assert_ne!(one[2], other[2]);
    }

    #[test]
    fn only_known_grams_count_and_each_once() {
        let mut prior =
            Prior { grams: vec![Gram::default(); 1024], scales: [0.5; TRAITS], ..Prior::default() };
        let (at, mark) = place(all("prime")[0], 1024);
        prior.grams[at] = Gram { fingerprint: mark, rarity: rarity(2.0), weights: [4; TRAITS] };
        let said = read_grams(&prior, &lexemes("prime prime xyz")).unwrap();
        assert!((said.traits[0] - 4.0 * 0.5 / 2.0).abs() < 1e-12, "{said:?}");
        assert!((said.familiarity - 0.4).abs() < 1e-12, "two of three words and two pairs: {said:?}");
    }
}
