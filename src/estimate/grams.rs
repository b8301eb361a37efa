//! Words, numbers and signs, and pairs of neighbours, as hashes: they need no dictionary.
//!
//! Pieces of words (beginnings and ends of some letters) were tried, and told nothing that these do not.

use crate::catalog::{Gram, Prior, TRAITS};
use crate::units::mixed;

use super::lexeme::Lexeme;

/// More lexemes are not looked at: what a question is like is told by so many.
const LEXEMES_MAX: usize = 4096;
/// Which sums of a `Gram`'s rarity stand for 1.
pub const RARITY_UNIT: f64 = 16.0;

/// What the words of a text say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    /// The sum of the known grams' weights, on each trait, of a text of length 1.
    pub traits: [f64; TRAITS],
    /// The share of the words and pairs that are known.
    pub familiarity: f64,
}

/// Makes grams of a text's lexemes: each alone, and with the one before it.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    before: Option<u64>,
    count: usize,
}

impl Pairs {
    /// Calls with the hash of a lexeme, and with that of the pair that it ends.
    #[inline]
    pub(super) fn add(&mut self, lexeme: &Lexeme<'_>, mut gram: impl FnMut(u64)) {
        if self.count == LEXEMES_MAX {
            return;
        }
        self.count += 1;
        let whole = match lexeme {
            Lexeme::Word(word) => word.hash,
            Lexeme::Number(number) => number.hash,
            Lexeme::Sign(sign) => mixed(u64::from(*sign)),
        };
        gram(whole);
        if let Some(before) = self.before {
            gram(mixed(whole ^ u64::rotate_left(before, 23)));
        }
        self.before = Some(whole);
    }
}

/// Where a gram stands in a table of so many places, a power of two, and its mark there.
pub fn place(gram: u64, places: usize) -> (usize, u8) {
    let place = usize::try_from(gram & u64::try_from(places - 1).unwrap_or(0)).unwrap_or(0);
    (place, u8::try_from(gram >> 56).unwrap_or(0))
}

/// A rarity as the table keeps it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub fn rarity(inverse_frequency: f64) -> u8 {
    (inverse_frequency * RARITY_UNIT).round().clamp(1.0, 255.0) as u8
}

/// Adds up what a prior knows of a text's grams, each counted once.
#[derive(Debug)]
pub(super) struct Sum<'p> {
    prior: &'p Prior,
    /// A bit for each place that was met.
    seen: Vec<u64>,
    weights: [i32; TRAITS],
    square: u32,
    known: u32,
    all: u32,
}

impl<'p> Sum<'p> {
    /// Of no gram yet; none of a prior that knows no words.
    pub(super) fn of(prior: &'p Prior) -> Option<Sum<'p>> {
        let places = prior.grams.len();
        places.is_power_of_two().then(|| Sum {
            prior,
            seen: vec![0; places.div_ceil(64)],
            weights: [0; TRAITS],
            square: 0,
            known: 0,
            all: 0,
        })
    }

    /// Adds a gram.
    #[inline]
    pub(super) fn add(&mut self, gram: u64) {
        self.all += 1;
        let (place, mark) = place(gram, self.prior.grams.len());
        let Gram { mark: kept, rarity, weights } = self.prior.grams[place];
        if rarity == 0 || kept != mark {
            return;
        }
        self.known += 1;
        let (bit, seen) = (1 << (place % 64), &mut self.seen[place / 64]);
        if *seen & bit == 0 {
            *seen |= bit;
            self.square += u32::from(rarity) * u32::from(rarity);
            self.weights.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(weight));
        }
    }

    /// What they say together.
    pub(super) fn said(&self) -> Said {
        let length = f64::from(self.square).sqrt().max(1.0) / RARITY_UNIT;
        Said {
            traits: std::array::from_fn(|i| f64::from(self.weights[i]) * self.prior.scales[i] / length),
            familiarity: f64::from(self.known) / f64::from(self.all.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::{Reading, Text};

    fn grams(text: &str) -> Vec<u64> {
        let mut grams = Vec::new();
        Reading::with(&Text::question(text), |gram| grams.push(gram));
        grams
    }

    #[test]
    fn capitals_change_no_gram_and_order_changes_pairs_alone() {
        assert_eq!(grams("The larger prime?"), grams("the LARGER  prime ?"));
        assert_eq!(grams("The larger prime?").len(), 4 + 3);
        let (one, other) = (grams("one two"), grams("two one"));
        assert_eq!((one[0], one[1]), (other[1], other[0]), "a pair follows its second word");
        assert_ne!(one[2], other[2]);
    }

    #[test]
    fn only_known_grams_count_and_each_once() {
        let mut prior =
            Prior { grams: vec![Gram::default(); 1024], scales: [0.5; TRAITS], ..Prior::default() };
        let (at, mark) = place(grams("prime")[0], 1024);
        prior.grams[at] = Gram { mark, rarity: rarity(2.0), weights: [4; TRAITS] };
        let mut sum = Sum::of(&prior).unwrap();
        grams("prime prime xyz").into_iter().for_each(|gram| sum.add(gram));
        let said = sum.said();
        assert!((said.traits[0] - 4.0 * 0.5 / 2.0).abs() < 1e-12, "{said:?}");
        assert!((said.familiarity - 0.4).abs() < 1e-12, "two of three words and two pairs: {said:?}");
    }
}
