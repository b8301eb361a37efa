//! Reads bytes out of a text in base 64 without decoding the rest of it.

/// No header is looked for further on: what comes before it in usual files (a thumbnail, a colour profile) is less.
const HEADER_MAX: usize = 256 * 1024;

/// Bytes in base 64, read one by one where they are wanted.
pub(crate) struct EncodedBytes<'u>(&'u [u8]);

impl<'u> EncodedBytes<'u> {
    /// The bytes behind a text.
    pub(crate) fn of(text: &'u str) -> EncodedBytes<'u> {
        EncodedBytes(text.as_bytes())
    }

    /// How many there are at most.
    pub(crate) fn len(&self) -> usize {
        self.0.len().div_ceil(4).saturating_mul(3)
    }

    /// The byte at that place. A character that is left out or put in moves all bytes behind it, so that a file with any but
    /// the usual characters before that place has none there.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        if at >= HEADER_MAX {
            return None;
        }
        let first = at / 3 * 4;
        let digit = |place: usize| digit(*self.0.get(first + place)?);
        match at % 3 {
            0 => Some(digit(0)? << 2 | digit(1)? >> 4),
            1 => Some(digit(1)? << 4 | digit(2)? >> 2),
            _ => Some(digit(2)? << 6 | digit(3)?),
        }
    }

    /// Whether these bytes stand at that place.
    pub(crate) fn starts_with(&self, at: usize, expected: &[u8]) -> bool {
        expected.iter().zip(at..).all(|(expected, at)| self.byte(at) == Some(*expected))
    }

    /// A whole number, its first byte the highest.
    pub(crate) fn big(&self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes).try_fold(0, |sum, at| Some(sum << 8 | u32::from(self.byte(at)?)))
    }

    /// A whole number, its first byte the lowest.
    pub(crate) fn little(&self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes).rev().try_fold(0, |sum, at| Some(sum << 8 | u32::from(self.byte(at)?)))
    }

    /// Whether all characters before that byte are of the alphabet.
    pub(crate) fn is_plain_until(&self, at: usize) -> bool {
        self.0.iter().take(at / 3 * 4).all(|character| digit(*character).is_some())
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// In base 64, without what fills up the last group.
#[cfg(test)]
pub(crate) fn encode(bytes: &[u8]) -> String {
    let digits = bytes.chunks(3).flat_map(|group| {
        let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let bits = u32::from(padded[0]) << 16 | u32::from(padded[1]) << 8 | u32::from(padded[2]);
        (0..=group.len()).map(move |place| ALPHABET[(bits >> (18 - 6 * place) & 63) as usize])
    });
    digits.map(char::from).collect()
}
