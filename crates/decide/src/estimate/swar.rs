//! Eight bytes of a text looked at in one go: which of them belong to a word, and what they are in lower case.
//!
//! Bytes stand in a `u64` in the order of the text, the first lowest. An answer has the top bit set of each byte
//! that it names, and of no other.

/// The same byte eight times.
const fn all(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

const TOPS: u64 = all(0x80);

/// The eight bytes from a place on; beyond the end of the text they are zero, which belongs to nothing.
pub(super) fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(eight) = rest.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(eight)
}

/// Letters, digits, apostrophes and underscores, all of them ASCII.
pub(super) fn word(eight: u64) -> u64 {
    let low = eight & !TOPS;
    (letters(eight) | within(low, b'0', b'9') | is(low, b'\'') | is(low, b'_')) & !eight & TOPS
}

/// Digits.
pub(super) fn digits(eight: u64) -> u64 {
    within(eight & !TOPS, b'0', b'9') & !eight & TOPS
}

/// True if there is an underscore among them.
pub(super) fn has_underscore(eight: u64) -> bool {
    is(eight & !TOPS, b'_') & !eight & TOPS != 0
}

/// Ends of lines.
pub(super) fn newlines(eight: u64) -> u64 {
    is(eight & !TOPS, b'\n') & !eight & TOPS
}

/// ASCII's capitals as small letters.
pub(super) fn lowered(eight: u64) -> u64 {
    eight | (letters(eight) & !eight & TOPS) >> 2
}

/// How many of the first bytes are named by an answer without a gap.
pub(super) fn run(named: u64) -> usize {
    (others(named).trailing_zeros() / 8) as usize
}

/// The bytes before the first that an answer does not name, the others zero.
pub(super) fn before(eight: u64, named: u64) -> u64 {
    let others = others(named);
    let first = others & others.wrapping_neg();
    eight & (first >> 7).wrapping_sub(1)
}

/// The top bits of the bytes that an answer does not name.
fn others(named: u64) -> u64 {
    !named & TOPS
}

/// ASCII's letters, large and small; the bits beside the top ones are anything, and so are other bytes' than ASCII's.
fn letters(eight: u64) -> u64 {
    within(eight & !TOPS | all(b' '), b'a', b'z')
}

/// Bytes between two of ASCII's; the bits beside the top ones are anything. No byte's top bit may be set.
fn within(low: u64, from: u8, to: u8) -> u64 {
    (low + all(0x80 - from)) & !(low + all(0x7f - to))
}

/// Bytes that are this one of ASCII's. No byte's top bit may be set.
fn is(low: u64, byte: u8) -> u64 {
    !((low ^ all(byte)) + all(0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, between bytes of another kind.
    fn check(named: impl Fn(u64) -> u64, expected: impl Fn(u8) -> bool) {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                for beside in [b'a', b' ', b'\'', 0x7f, 0x80, 0xff, b'9', 0] {
                    let mut bytes = [beside; 8];
                    bytes[at] = byte;
                    let named = named(u64::from_le_bytes(bytes)).to_le_bytes();
                    let wanted = bytes.map(|byte| if expected(byte) { 0x80 } else { 0 });
                    assert_eq!(named, wanted, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_named_as_one_by_one() {
        check(word, |byte| byte.is_ascii_alphanumeric() || byte == b'\'' || byte == b'_');
        check(digits, |byte| byte.is_ascii_digit());
        check(newlines, |byte| byte == b'\n');
        check(|eight| (lowered(eight) ^ eight) << 2, |byte| byte.is_ascii_uppercase());
        for byte in 0..=u8::MAX {
            let eight = u64::from_le_bytes([b'a', 0xdf, byte, b' ', 0x7f, b'^', b'`', 0]);
            assert_eq!(has_underscore(eight), byte == b'_', "{byte}");
        }
    }

    #[test]
    fn what_stands_beyond_the_end_is_zero() {
        assert_eq!(load(b"ab", 1), u64::from(b'b'));
        assert_eq!(load(b"ab", 5), 0);
        assert_eq!(load(b"abcdefghi", 1), u64::from_le_bytes(*b"bcdefghi"));
        assert_eq!(before(load(b"abc efghi", 0), word(load(b"abc efghi", 0))), load(b"abc", 0));
        assert_eq!(before(load(b"abcdefghi", 0), word(load(b"abcdefghi", 0))), load(b"abcdefgh", 0));
        assert_eq!(before(load(b" bcdefghi", 0), word(load(b" bcdefghi", 0))), 0);
        assert_eq!((run(word(load(b"don't_stop", 0))), run(word(load(b"a b", 0)))), (8, 1));
    }
}
