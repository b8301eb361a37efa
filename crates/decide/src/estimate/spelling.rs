//! How a word is spelt, in small letters: the hash that the shipped weights go by, and the beginning that cue words
//! are looked up by.

use stint_types::units::mix64;

use super::swar;

/// A word is hashed over its first bytes.
const HASHED_MAX: usize = 32;
/// The hash of nothing.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A word as far as it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    state: u64,
    /// How many bytes it has.
    pub bytes: usize,
    /// Its first sixteen bytes in lower case, zeros where it has fewer.
    pub head: [u64; 2],
}

impl Spelling {
    /// The run of bytes of one kind from a place on. What is short, as most words are, stays in registers.
    #[inline(always)]
    pub(super) fn run(bytes: &[u8], from: usize, kind: impl Fn(u64) -> u64) -> Spelling {
        let first = SpellingChunk::at(bytes, from, &kind);
        if first.count == 8 {
            return Spelling::long(&first, bytes, from, kind);
        }
        Spelling { state: hashed(SEED, first.lower), bytes: first.count, head: [first.lower, 0] }
    }

    /// A run that begins with eight bytes.
    #[inline(never)]
    fn long(first: &SpellingChunk, bytes: &[u8], from: usize, kind: impl Fn(u64) -> u64) -> Spelling {
        let mut piece = SpellingChunk::at(bytes, from + 8, &kind);
        let head = [first.lower, piece.lower];
        let (mut state, mut count) = (hashed(SEED, first.lower), 8);
        while piece.count > 0 {
            if count < HASHED_MAX {
                state = hashed(state, piece.lower);
            }
            count += piece.count;
            if piece.count < 8 {
                break;
            }
            piece = SpellingChunk::at(bytes, from + count, &kind);
        }
        Spelling { state, bytes: count, head }
    }

    /// A whole word.
    pub(super) fn of(word: &[u8]) -> Spelling {
        let mut spelling = Spelling { state: SEED, bytes: word.len(), head: [0; 2] };
        for from in (0..word.len()).step_by(8) {
            let lower = swar::lowered(swar::load(word, from));
            if let Some(head) = spelling.head.get_mut(from / 8) {
                *head = lower;
            }
            if from < HASHED_MAX {
                spelling.state = hashed(spelling.state, lower);
            }
        }
        spelling
    }

    /// Its hash. The shipped weights stand in the places that this gives words, so it cannot change without them.
    pub(super) fn hash(&self) -> u64 {
        mix64(self.state ^ u64::try_from(self.bytes.min(HASHED_MAX)).unwrap_or(0))
    }
}

/// Up to eight bytes of one kind.
struct SpellingChunk {
    /// In lower case, the first lowest, zeros where there are fewer.
    lower: u64,
    count: usize,
}

impl SpellingChunk {
    #[inline(always)]
    fn at(bytes: &[u8], from: usize, kind: impl Fn(u64) -> u64) -> SpellingChunk {
        let eight = swar::load(bytes, from);
        let named = kind(eight);
        SpellingChunk { lower: swar::before(swar::lowered(eight), named), count: swar::run(named) }
    }
}

/// The hash with eight bytes more.
#[inline(always)]
fn hashed(state: u64, lower: u64) -> u64 {
    let state = (state ^ lower).wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^ (state >> 32)
}
