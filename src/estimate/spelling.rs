//! How a word is spelt, in small letters: the hash that the shipped weights go by, and the beginning that cue words
//! are looked up by.

use crate::units::mixed;

use super::eight;

/// A word is hashed over its first bytes.
const HASHED_MAX: usize = 32;

/// A word as far as it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    state: u64,
    /// How many bytes it has.
    pub bytes: usize,
    /// Its first sixteen bytes in lower case, zeros where it has fewer.
    pub head: [u64; 2],
    /// Whether there is an underscore in it.
    pub underscored: bool,
}

impl Spelling {
    const NONE: Spelling =
        Spelling { state: 0x9e37_79b9_7f4a_7c15, bytes: 0, head: [0; 2], underscored: false };

    /// The run of bytes of one kind from a place on.
    #[inline]
    pub(super) fn run(bytes: &[u8], from: usize, kind: impl Fn(u64) -> u64) -> Spelling {
        let mut spelling = Spelling::NONE;
        loop {
            let eight = eight::load(bytes, from + spelling.bytes);
            let count = eight::run(kind(eight));
            spelling.add(eight::first(eight, count), count);
            if count < 8 {
                return spelling;
            }
        }
    }

    /// A whole word.
    pub(super) fn of(word: &[u8]) -> Spelling {
        let mut spelling = Spelling::NONE;
        while spelling.bytes < word.len() {
            spelling.add(eight::load(word, spelling.bytes), (word.len() - spelling.bytes).min(8));
        }
        spelling
    }

    #[inline]
    fn add(&mut self, eight: u64, count: usize) {
        if count == 0 {
            return;
        }
        let lower = eight::lowered(eight);
        if let Some(head) = self.head.get_mut(self.bytes / 8) {
            *head = lower;
        }
        if self.bytes < HASHED_MAX {
            self.state = (self.state ^ lower).wrapping_mul(0xff51_afd7_ed55_8ccd);
            self.state ^= self.state >> 32;
        }
        self.underscored |= eight::underscored(eight);
        self.bytes += count;
    }

    /// Its hash. The shipped weights stand in the places that this gives words, so it cannot change without them.
    pub(super) fn hash(&self) -> u64 {
        mixed(self.state ^ u64::try_from(self.bytes.min(HASHED_MAX)).unwrap_or(0))
    }
}
