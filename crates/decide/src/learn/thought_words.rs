//! Which words make one model think longer.
//!
//! A ridge regression, taken online: words are believed independent of each other, so each has a precision and a product. What is
//! left of a surprise beside what the other words may be off goes to each. Many words share a place; there are few of them, since
//! every outcome copies all.

/// How many places there are.
pub(super) const PLACES: usize = 512;
/// All sums: a precision for each place, then a product.
pub(super) const SUMS: usize = 2 * PLACES;
/// How precisely a word's weight is expected to be zero, in outcomes.
const PRIOR: f64 = 4.0;

/// The words of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestWords<'a> {
    /// By their hashes.
    pub places: &'a [u16],
    /// What each counts: their squares add up to 1.
    pub value: f64,
}

/// What is believed of words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThoughtWords(Vec<f64>);

impl RequestWords<'_> {
    fn each(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|&place| usize::from(place) % PLACES)
    }
}

impl ThoughtWords {
    /// What follows from the sums.
    pub(super) fn of(sums: &[f64]) -> ThoughtWords {
        ThoughtWords(sums.to_vec())
    }

    /// By how much a request's words make a thought longer.
    pub(super) fn longer(&self, words: RequestWords<'_>) -> f64 {
        words.value * words.each().map(|place| self.word(place).0).sum::<f64>()
    }

    /// A word's weight, and how unsure that is.
    fn word(&self, place: usize) -> (f64, f64) {
        let sum = |at: usize| self.0.get(at).copied().unwrap_or_default();
        let variance = (sum(place) + PRIOR).recip();
        (sum(PLACES + place) * variance, variance)
    }

    /// Adds to the sums that a thought was so much longer than was believed.
    pub(super) fn add(&self, sums: &mut [f64], words: RequestWords<'_>, surprise: f64) {
        let square = words.value.powi(2);
        let unsure = square * words.each().map(|place| self.word(place).1).sum::<f64>();
        let part = 1.0 / (1.0 + unsure);
        for place in words.each() {
            let (mean, _) = self.word(place);
            sums[place] += part * square;
            sums[PLACES + place] += part * (square * mean + words.value * surprise);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_long_thoughts_are_told_from_those_of_short_ones() {
        let mut sums = vec![0.0; SUMS];
        let of = |places: &'static [u16]| RequestWords { places, value: 0.5_f64.sqrt() };
        let (long, short) = (of(&[3, 900]), of(&[4, 900]));
        for _ in 0..40 {
            for (words, truth) in [(long, 1.0), (short, -1.0)] {
                let believed = ThoughtWords::of(&sums);
                let surprise = truth - believed.longer(words);
                believed.add(&mut sums, words, surprise);
            }
        }
        let believed = ThoughtWords::of(&sums);
        assert!(believed.longer(long) > 0.7 && believed.longer(short) < -0.7, "{}", believed.longer(long));
        assert!(believed.longer(of(&[900, 901])).abs() < 0.15);
    }
}
