//! What both priors know of a text's words, signs and pairs.

use stint_types::catalog::{GramPair, LengthPrior, Prior, TRAITS, TextPriors};

use super::grams::{BATCH, GramReading, RARITY_UNIT, familiarity, place};

/// The grams of a text that the priors know, and the sums of their weights: each place counts once.
#[derive(Debug)]
pub(super) struct KnownGrams<'p> {
    pairs: &'p [GramPair],
    /// Two bits for each place: whether its gram by the general prior was met, and its gram by the prior of lengths.
    met: Vec<u64>,
    traits: GramSums<TRAITS>,
    lengths: GramSums<2>,
    /// How many the general prior knows, repetitions too.
    count: usize,
}

/// A lexeme that was looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundGram {
    pub hash: u64,
    /// How rare the gram in its place is.
    pub rarity: u8,
    /// True if that is this one.
    pub is_known: bool,
}

impl<'p> KnownGrams<'p> {
    /// None so far; nothing where the general prior knows none.
    pub(super) fn of(priors: &'p TextPriors) -> Option<KnownGrams<'p>> {
        let pairs = priors.grams();
        let places = priors.general().grams.len();
        let met = places.is_power_of_two().then(|| vec![0; places.div_ceil(32)])?;
        Some(KnownGrams { pairs, met, traits: GramSums::default(), lengths: GramSums::default(), count: 0 })
    }

    /// Adds some grams, [`BATCH`] at most, and shows what the general prior knows of each. There is no branch: which grams
    /// are known, or new, is hard to guess.
    #[inline(always)]
    pub(super) fn add(&mut self, grams: &[u64], mut look: impl FnMut(FoundGram)) {
        let (mut traits, mut lengths) = (BatchSums::default(), BatchSums::default());
        let (mut count, all_met) = (0, self.met.as_mut_slice());
        let places = self.pairs.len();
        // Alone in a loop, these reads do not wait for each other.
        let mut pairs = [GramPair::default(); BATCH];
        pairs.iter_mut().zip(grams).for_each(|(pair, &hash)| *pair = self.pairs[place(hash, places).0]);
        for (GramPair { general, length }, &hash) in pairs.iter().zip(grams) {
            let (place, mark) = place(hash, places);
            let is_known = (general.rarity != 0) & (general.fingerprint == mark);
            let is_length_known = (length.rarity != 0) & (length.fingerprint == mark);
            let known = u64::from(is_known) | u64::from(is_length_known) << 1;
            let (met, shift) = (&mut all_met[place / 32], 2 * (place % 32));
            let new = known & !(*met >> shift);
            *met |= known << shift;
            count += usize::from(is_known);
            traits.add(new & 1 != 0, general.rarity, &general.weights);
            lengths.add(new & 2 != 0, length.rarity, &length.weights);
            look(FoundGram { hash, rarity: general.rarity, is_known });
        }
        self.count += count;
        self.traits.add(&traits);
        self.lengths.add(&lengths);
    }

    /// What the general prior says of a text of so many lexemes.
    pub(super) fn reading(&self, prior: &Prior, lexemes: usize) -> GramReading {
        GramReading {
            traits: self.traits.scaled(&prior.scales),
            familiarity: familiarity(self.count, lexemes),
        }
    }

    /// What they add to the logarithms of a thought's and of an answer's length.
    pub(super) fn longer(&self, prior: &LengthPrior) -> [f64; 2] {
        self.lengths.scaled(&prior.scales)
    }
}

/// Sums over the grams of a text.
#[derive(Debug)]
struct GramSums<const N: usize> {
    weights: [i32; N],
    square: u32,
}

impl<const N: usize> Default for GramSums<N> {
    fn default() -> GramSums<N> {
        GramSums { weights: [0; N], square: 0 }
    }
}

impl<const N: usize> GramSums<N> {
    #[inline(always)]
    fn add(&mut self, batch: &BatchSums<N>) {
        self.square += batch.square;
        self.weights.iter_mut().zip(batch.weights).for_each(|(sum, weight)| *sum += i32::from(weight));
    }

    /// In these units, of a text of length 1.
    fn scaled(&self, scales: &[f64; N]) -> [f64; N] {
        let length = f64::from(self.square).sqrt().max(1.0) / RARITY_UNIT;
        std::array::from_fn(|i| f64::from(self.weights[i]) * scales[i] / length)
    }
}

/// Sums over a batch: [`BATCH`] weights fit two bytes.
struct BatchSums<const N: usize> {
    weights: [i16; N],
    square: u32,
}

const _: () = assert!(BATCH * 128 <= i16::MAX as usize, "a batch's weights overflow");

impl<const N: usize> Default for BatchSums<N> {
    fn default() -> BatchSums<N> {
        BatchSums { weights: [0; N], square: 0 }
    }
}

impl<const N: usize> BatchSums<N> {
    #[inline(always)]
    fn add(&mut self, counts: bool, rarity: u8, weights: &[i8; N]) {
        let rarity = u32::from(rarity) * u32::from(counts);
        self.square += rarity * rarity;
        let mask = -i16::from(counts);
        self.weights.iter_mut().zip(weights).for_each(|(sum, &weight)| *sum += i16::from(weight) & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::grams::{LexemeBuffer, read_grams};
    use crate::estimate::lengths::words;
    use crate::estimate::shipped;
    use crate::estimate::text::{QuestionText, TextAnalysis};

    fn check(priors: &TextPriors, lexemes: &[u64]) {
        let mut known = KnownGrams::of(priors).unwrap();
        let mut buffer = LexemeBuffer::default();
        for &lexeme in lexemes {
            buffer.push(lexeme);
            if buffer.is_full() {
                buffer.show(|batch| known.add(batch.grams, |_| ()));
            }
        }
        buffer.show(|batch| known.add(batch.grams, |_| ()));
        assert_eq!(buffer.count(), lexemes.len());
        let quick = known.reading(priors.general(), lexemes.len());
        let plain = read_grams(priors.general(), lexemes).unwrap();
        assert_eq!(quick.traits.map(f64::to_bits), plain.traits.map(f64::to_bits));
        assert_eq!(quick.familiarity.to_bits(), plain.familiarity.to_bits());
        let plain = words(priors.lengths(), lexemes);
        assert_eq!(known.longer(priors.lengths()).map(f64::to_bits), plain.map(f64::to_bits));
    }

    #[test]
    fn looked_up_together_grams_say_what_each_prior_says_one_by_one() {
        let priors = shipped().unwrap().priors;
        let text = include_str!("../../../../README.md");
        for bytes in [0, 1, 5, 60, 300, 400, 2_048, 9_000, text.len()] {
            let mut lexemes = Vec::new();
            let question = QuestionText::question(&text[..text.floor_char_boundary(bytes)]);
            TextAnalysis::with(&question, |lexeme| lexemes.push(lexeme));
            for count in (0..lexemes.len().min(200)).chain([lexemes.len()]) {
                check(&priors, &lexemes[..count]);
            }
        }
    }

    #[test]
    fn without_words_of_lengths_nothing_is_longer() {
        let general = shipped().unwrap().priors.general().clone();
        check(&TextPriors::of(general, LengthPrior::default()), &[1, 2, 3, 1]);
        assert!(KnownGrams::of(&TextPriors::default()).is_none());
    }
}
