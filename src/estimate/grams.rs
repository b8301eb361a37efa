//! Words, numbers and signs, and pairs of neighbours, as hashes: they need no dictionary.
//!
//! Pieces of words (beginnings and ends of some letters) were tried, and told nothing that these do not.

use crate::catalog::{Gram, Prior, TRAITS};
use crate::units::mixed;

use super::text::{Lexeme, Reading};

/// More lexemes are not looked at: what a question is like is told by so many.
const LEXEMES_MAX: usize = 4096;
/// Which sums of a `Gram`'s rarity stand for 1.
pub const RARITY_UNIT: f64 = 16.0;
/// A word is lowered and hashed in one go over its first bytes.
const WORD_MAX: usize = 32;

/// What the words of a text say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    /// The sum of the known grams' weights, on each trait, of a text of length 1.
    pub traits: [f64; TRAITS],
    /// The share of the words and pairs that are known.
    pub familiarity: f64,
}

/// Calls with the hash of every lexeme and every pair of neighbours, repetitions too.
pub(super) fn each(reading: &Reading<'_>, mut gram: impl FnMut(u64)) {
    let mut before = None;
    for lexeme in reading.lexemes.iter().take(LEXEMES_MAX) {
        let whole = match lexeme {
            Lexeme::Word(word) | Lexeme::Number(word) => lowered(word),
            Lexeme::Sign(sign) => mixed(u64::from(*sign)),
        };
        gram(whole);
        if let Some(before) = before {
            gram(mixed(whole ^ u64::rotate_left(before, 23)));
        }
        before = Some(whole);
    }
}

fn lowered(word: &str) -> u64 {
    let mut lower = [0_u8; WORD_MAX];
    let bytes = &word.as_bytes()[..word.len().min(WORD_MAX)];
    let lower = &mut lower[..bytes.len()];
    lower.copy_from_slice(bytes);
    lower.make_ascii_lowercase();
    hash(lower)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state ^= state >> 32;
    }
    mixed(state ^ u64::try_from(bytes.len()).unwrap_or(0))
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

/// Adds up what a prior knows of a text's grams, each counted once. `every` calls with each of them.
pub(super) fn said(prior: &Prior, every: impl FnOnce(&mut dyn FnMut(u64))) -> Said {
    let places = prior.grams.len();
    if !places.is_power_of_two() {
        return Said::default();
    }
    let mut seen = vec![0_u64; places.div_ceil(64)];
    let mut sums = [0_i32; TRAITS];
    let (mut square, mut known, mut all) = (0_u32, 0_u32, 0_u32);
    every(&mut |gram| {
        all += 1;
        let (place, mark) = place(gram, places);
        let Gram { mark: kept, rarity, weights } = prior.grams[place];
        if rarity == 0 || kept != mark {
            return;
        }
        known += 1;
        let bit = 1 << (place % 64);
        if seen[place / 64] & bit == 0 {
            seen[place / 64] |= bit;
            square += u32::from(rarity) * u32::from(rarity);
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(weight));
        }
    });
    let length = f64::from(square).sqrt().max(1.0) / RARITY_UNIT;
    Said {
        traits: std::array::from_fn(|i| f64::from(sums[i]) * prior.scales[i] / length),
        familiarity: f64::from(known) / f64::from(all.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::Text;

    fn grams(text: &str) -> Vec<u64> {
        let mut grams = Vec::new();
        each(&Reading::of(&Text::question(text)), |gram| grams.push(gram));
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
        let said = said(&prior, |add| grams("prime prime xyz").into_iter().for_each(add));
        assert!((said.traits[0] - 4.0 * 0.5 / 2.0).abs() < 1e-12, "{said:?}");
        assert!((said.familiarity - 0.4).abs() < 1e-12, "two of three words and two pairs: {said:?}");
    }
}
