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
        let (mut state, mut count, mut next) = (hashed(SEED, first.lower), first.count, 0);
        if first.count == 8 {
            (state, count, next) = long(state, bytes, from, kind);
        }
        Spelling { state, bytes: count, head: [first.lower, next] }
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

    /// True if there is an underscore in the word whose spelling this is. Few words have more bytes than the head.
    #[inline(always)]
    pub(super) fn has_underscore(&self, word: &[u8]) -> bool {
        let [low, high] = self.head;
        let rest = word.get(16..).unwrap_or_default();
        swar::has_underscore(low) | swar::has_underscore(high) || rest.contains(&b'_')
    }

    /// Its hash. The shipped weights stand in the places that this gives words, so it cannot change without them.
    pub(super) fn hash(&self) -> u64 {
        mix64(self.state ^ u64::try_from(self.bytes.min(HASHED_MAX)).unwrap_or(0))
    }
}

/// The rest of a run that begins with eight bytes, whose hash is `state`: the hash of all, how many bytes there are, and the
/// second eight.
#[inline(never)]
fn long(mut state: u64, bytes: &[u8], from: usize, kind: impl Fn(u64) -> u64) -> (u64, usize, u64) {
    let mut chunk = SpellingChunk::at(bytes, from + 8, &kind);
    let (next, mut count) = (chunk.lower, 8);
    while chunk.count > 0 {
        if count < HASHED_MAX {
            state = hashed(state, chunk.lower);
        }
        count += chunk.count;
        if chunk.count < 8 {
            break;
        }
        chunk = SpellingChunk::at(bytes, from + count, &kind);
    }
    (state, count, next)
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
