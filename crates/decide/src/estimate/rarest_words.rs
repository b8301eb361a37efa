//! The rarest known words of a text, by places that their hashes have. They are counted by rarity and read off in order, so that
//! nothing is sorted.

use stint_types::catalog::{TRAIT_WORD_PLACES, TRAIT_WORDS_MAX};

use super::known_grams::FoundGram;

const PLACES: usize = TRAIT_WORD_PLACES as usize;

/// The known words of a text so far.
pub(super) struct RarestWords {
    /// A bit for each place that was met.
    seen: [u64; PLACES / 64],
    /// How rare the first word was that was met in a place.
    rarity: [u8; PLACES],
    /// How many places have words of a rarity.
    counts: [u16; 256],
    /// The same of sixteen rarities in a row.
    coarse: [u16; 16],
}

impl Default for RarestWords {
    fn default() -> RarestWords {
        RarestWords { seen: [0; PLACES / 64], rarity: [0; PLACES], counts: [0; 256], coarse: [0; 16] }
    }
}

impl RarestWords {
    /// Adds a lexeme, if it is known.
    #[inline(always)]
    pub(super) fn add(&mut self, lexeme: FoundGram) {
        let FoundGram { hash, rarity, is_known } = lexeme;
        let place = usize::from(word(hash));
        let seen = &mut self.seen[place / 64];
        let is_new = is_known & ((*seen >> (place % 64)) & 1 == 0);
        *seen |= u64::from(is_known) << (place % 64);
        let first = &mut self.rarity[place];
        *first = if is_new { rarity } else { *first };
        self.counts[usize::from(rarity)] += u16::from(is_new);
        self.coarse[usize::from(rarity / 16)] += u16::from(is_new);
    }

    /// The places of the words, in order and each once: where there are too many, of the rarest.
    pub(super) fn places(&self) -> Vec<u16> {
        let (cut, mut left) = self.cut();
        let (mut words, mut count) = ([0; TRAIT_WORDS_MAX + 1], 0);
        for (mut bits, first) in self.seen.iter().copied().zip((0_u16..).step_by(64)) {
            while bits != 0 {
                let place = first + u16::try_from(bits.trailing_zeros()).unwrap_or(0);
                bits &= bits - 1;
                let rarity = self.rarity[usize::from(place)];
                let is_last = (rarity == cut) & (left > 0);
                left -= usize::from(is_last);
                // What is not wanted is written over.
                words[count.min(TRAIT_WORDS_MAX)] = place;
                count += usize::from((rarity > cut) | is_last);
            }
        }
        words[..count.min(TRAIT_WORDS_MAX)].to_vec()
    }

    /// Rarer words than this are kept, and so many that are just as rare.
    fn cut(&self) -> (u8, usize) {
        let all = (0, 0);
        let Some((row, left)) = cut(&self.coarse, TRAIT_WORDS_MAX) else { return all };
        let Some((column, left)) = cut(&self.counts[16 * row..][..16], left) else { return all };
        (u8::try_from(16 * row + column).unwrap_or(u8::MAX), left)
    }
}

/// The first of these counts, from the end, that so many do not hold whole beside those after it, and how many they hold of it.
fn cut(counts: &[u16], mut left: usize) -> Option<(usize, usize)> {
    for (at, &count) in counts.iter().enumerate().rev() {
        match left.checked_sub(usize::from(count)) {
            Some(less) => left = less,
            None => return Some((at, left)),
        }
    }
    None
}

/// A word's place, by bits of its hash that its place in the prior's table does not use.
fn word(lexeme: u64) -> u16 {
    let [.., low, high, _, _] = lexeme.to_le_bytes();
    u16::from_le_bytes([low, high]) % TRAIT_WORD_PLACES
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BTreeMap;

    use stint_types::units::SeededRng;

    use super::*;

    /// The same, by sorting.
    fn sorted(lexemes: &[FoundGram]) -> Vec<u16> {
        let mut rarities: BTreeMap<u16, u8> = BTreeMap::new();
        for lexeme in lexemes.iter().filter(|lexeme| lexeme.is_known) {
            rarities.entry(word(lexeme.hash)).or_insert(lexeme.rarity);
        }
        let mut words: Vec<_> =
            rarities.into_iter().map(|(place, rarity)| (Reverse(rarity), place)).collect();
        words.sort_unstable();
        let mut places: Vec<u16> = words.into_iter().take(TRAIT_WORDS_MAX).map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }

    fn check(count: usize, rarities: u64, dice: &mut SeededRng) {
        let mut lexeme = |_| FoundGram {
            hash: dice.next_u64(),
            rarity: u8::try_from(1 + dice.next_u64() % rarities).unwrap(),
            is_known: !dice.next_u64().is_multiple_of(4),
        };
        let lexemes: Vec<FoundGram> = (0..count).map(&mut lexeme).collect();
        let mut words = RarestWords::default();
        lexemes.iter().for_each(|&lexeme| words.add(lexeme));
        assert_eq!(words.places(), sorted(&lexemes), "{count} words of {rarities} rarities");
    }

    #[test]
    fn the_rarest_words_are_those_that_sorting_finds() {
        let mut dice = SeededRng::new(3);
        for rarities in [1, 2, 15, 16, 40, 255] {
            for count in (0..140).chain([4_000]) {
                check(count, rarities, &mut dice);
            }
        }
    }
}
