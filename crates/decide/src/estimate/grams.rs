//! Words, numbers and signs, and pairs of neighbours, as hashes: they need no dictionary.
//!
//! Pieces of words (beginnings and ends of some letters) were tried, and told nothing that these do not.

use stint_types::catalog::{Gram, Prior, TRAITS};
use stint_types::units::mix64;

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

/// So many grams are looked up together: then their places are read side by side, and no guess of the processor's at
/// which of them are known holds up the next.
const BATCH: usize = 64;

/// Adds up what a prior knows of a text's grams, each counted once; none of a prior that knows no words.
pub(super) fn read_grams(prior: &Prior, lexemes: &[u64]) -> Option<GramReading> {
    let places = prior.grams.len();
    let mut sum = GramSum {
        places: &prior.grams,
        seen: places.is_power_of_two().then(|| vec![0; places.div_ceil(64)])?,
        weights: [0; TRAITS],
        square: 0,
        known: 0,
    };
    for at in (0..lexemes.len()).step_by(BATCH) {
        let some = |beside| &lexemes[at..lexemes.len().min(at + BATCH + beside)];
        sum.add(some(0).iter().copied());
        sum.add(some(1).windows(2).map(pair));
    }
    let all = (2 * lexemes.len()).saturating_sub(1).max(1);
    let length = f64::from(sum.square).sqrt().max(1.0) / RARITY_UNIT;
    Some(GramReading {
        traits: std::array::from_fn(|i| f64::from(sum.weights[i]) * prior.scales[i] / length),
        familiarity: count(sum.known) / count(all),
    })
}

/// What a prior knows of the grams so far.
struct GramSum<'p> {
    places: &'p [Gram],
    /// A bit for each place that was met.
    seen: Vec<u64>,
    weights: [i32; TRAITS],
    square: u32,
    known: usize,
}

impl GramSum<'_> {
    /// Adds some grams, `TOGETHER` at most.
    #[inline(always)]
    fn add(&mut self, grams: impl Iterator<Item = u64>) {
        let all = self.places;
        let known = TablePlaces::of(grams.map(|gram| {
            let (place, mark) = place(gram, all.len());
            (place, (all[place].rarity != 0) & (all[place].fingerprint == mark))
        }));
        self.known += known.count;
        let new = TablePlaces::of(known.each().iter().map(|&place| {
            let (bit, seen) = (1 << (place % 64), &mut self.seen[place / 64]);
            let is_new = *seen & bit == 0;
            *seen |= bit;
            (place, is_new)
        }));
        let mut weights = PackedSums::default();
        for &place in new.each() {
            let gram = &all[place];
            self.square += u32::from(gram.rarity) * u32::from(gram.rarity);
            weights.add(gram.weights);
        }
        self.weights.iter_mut().zip(weights.sums()).for_each(|(sum, weight)| *sum += weight);
    }
}

/// Sums of `TOGETHER` grams' weights at most, all traits in one go: each raised by 128, so that none is negative, in sixteen
/// bits of its own.
#[derive(Default)]
struct PackedSums {
    even: u64,
    odd: u64,
    count: i32,
}

impl PackedSums {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;

    #[inline(always)]
    fn add(&mut self, weights: [i8; TRAITS]) {
        let raised = u64::from_le_bytes(weights.map(i8::cast_unsigned)) ^ 0x8080_8080_8080_8080;
        self.even += raised & PackedSums::EVEN;
        self.odd += (raised >> 8) & PackedSums::EVEN;
        self.count += 1;
    }

    #[expect(clippy::cast_possible_truncation, reason = "one lane of four")]
    fn sums(&self) -> [i32; TRAITS] {
        std::array::from_fn(|i| {
            let lanes = if i % 2 == 0 { self.even } else { self.odd };
            i32::from((lanes >> (16 * (i / 2))) as u16) - 128 * self.count
        })
    }
}

/// Some places of a table.
struct TablePlaces {
    places: [usize; BATCH],
    count: usize,
}

impl TablePlaces {
    /// Those that are wanted, of `TOGETHER` at most. Each is written down, and the next one over it where it is not
    /// wanted: that takes no branch.
    #[inline(always)]
    fn of(places: impl Iterator<Item = (usize, bool)>) -> TablePlaces {
        let mut found = TablePlaces { places: [0; BATCH], count: 0 };
        for (place, is_wanted) in places {
            found.places[found.count % BATCH] = place;
            found.count += usize::from(is_wanted);
        }
        found
    }

    fn each(&self) -> &[usize] {
        &self.places[..self.count.min(BATCH)]
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts within 16 KB of text")]
fn count(counted: usize) -> f64 {
    counted as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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

    /// The same, one gram after another.
    fn slowly(prior: &Prior, lexemes: &[u64]) -> GramReading {
        let (mut seen, mut known, mut all) = (BTreeSet::new(), 0, 0);
        let (mut weights, mut square) = ([0_i32; TRAITS], 0_u32);
        for gram in grams(lexemes) {
            let (place, mark) = place(gram, prior.grams.len());
            let kept = prior.grams[place];
            all += 1;
            if kept.rarity == 0 || kept.fingerprint != mark {
                continue;
            }
            known += 1;
            if seen.insert(place) {
                square += u32::from(kept.rarity).pow(2);
                weights.iter_mut().zip(kept.weights).for_each(|(sum, weight)| *sum += i32::from(weight));
            }
        }
        let length = f64::from(square).sqrt().max(1.0) / RARITY_UNIT;
        GramReading {
            traits: std::array::from_fn(|i| f64::from(weights[i]) * prior.scales[i] / length),
            familiarity: count(known) / count(all.max(1)),
        }
    }

    #[test]
    fn looked_up_together_grams_say_what_they_say_one_by_one() {
        let prior = crate::estimate::shipped().unwrap().general;
        let text = include_str!("../../../../README.md");
        for bytes in [0, 1, 5, 60, 300, 400, 2_048, 9_000, text.len()] {
            let lexemes = lexemes(&text[..text.floor_char_boundary(bytes)]);
            for count in (0..lexemes.len().min(200)).chain([lexemes.len()]) {
                let (quick, slow) =
                    (read_grams(&prior, &lexemes[..count]).unwrap(), slowly(&prior, &lexemes[..count]));
                assert_eq!(quick.traits.map(f64::to_bits), slow.traits.map(f64::to_bits));
                assert_eq!(quick.familiarity.to_bits(), slow.familiarity.to_bits());
            }
        }
    }
}
