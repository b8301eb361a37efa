//! The chunks of a body (RFC 9112, section 7.1): where they end.

use super::FramingError;

/// The most digits of a chunk's length.
const DIGITS_MAX: u8 = 16;

/// Follows a chunked body, byte by byte.
#[derive(Debug)]
pub(super) enum ChunkScanner {
    /// In the length of a chunk, after so many digits.
    Length {
        length: u64,
        digits: u8,
    },
    /// After the length: blanks and extensions, until the line ends.
    Extension {
        length: u64,
        is_blank: bool,
    },
    /// Before the line feed of that line.
    LengthEnd {
        length: u64,
    },
    /// In a chunk that has so many bytes more.
    Data {
        left: u64,
    },
    /// After a chunk.
    DataReturn,
    DataFeed,
    /// At the beginning of a line after the last chunk, in such a line, and before its line feed.
    TrailerBegin,
    Trailer,
    TrailerFeed,
    /// Before the last line feed.
    LastFeed,
    Over,
}

impl Default for ChunkScanner {
    fn default() -> ChunkScanner {
        ChunkScanner::Length { length: 0, digits: 0 }
    }
}

impl ChunkScanner {
    /// True if the body has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, ChunkScanner::Over)
    }

    /// Takes the next bytes: how many of them belong to the body.
    ///
    /// # Errors
    /// [`FramingError::Chunk`].
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, FramingError> {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            if let ChunkScanner::Data { left } = self {
                let taken = (bytes.len() - at).min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                at += taken;
                if *left == 0 {
                    *self = ChunkScanner::DataReturn;
                }
                continue;
            }
            *self = self.after(bytes[at]).ok_or(FramingError::Chunk)?;
            at += 1;
        }
        Ok(at)
    }

    /// Where it stands after a byte that is no data; `None` if that byte may not be there.
    fn after(&self, byte: u8) -> Option<ChunkScanner> {
        Some(match (self, byte) {
            (&ChunkScanner::Length { length, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16)?;
                let digits = Some(digits + 1).filter(|digits| *digits <= DIGITS_MAX)?;
                ChunkScanner::Length { length: length << 4 | u64::from(digit), digits }
            }
            (&ChunkScanner::Length { length, digits: 1.. }, _) => after_length(length, true, byte)?,
            (&ChunkScanner::Extension { length, is_blank }, _) => after_length(length, is_blank, byte)?,
            (&ChunkScanner::LengthEnd { length: 0 }, b'\n') => ChunkScanner::TrailerBegin,
            (&ChunkScanner::LengthEnd { length }, b'\n') => ChunkScanner::Data { left: length },
            (ChunkScanner::DataReturn, b'\r') => ChunkScanner::DataFeed,
            (ChunkScanner::DataFeed, b'\n') => ChunkScanner::default(),
            (ChunkScanner::TrailerBegin, b'\r') => ChunkScanner::LastFeed,
            (ChunkScanner::LastFeed, b'\n') => ChunkScanner::Over,
            (ChunkScanner::Trailer, b'\r') => ChunkScanner::TrailerFeed,
            (ChunkScanner::TrailerFeed, b'\n') => ChunkScanner::TrailerBegin,
            (ChunkScanner::TrailerBegin | ChunkScanner::Trailer, byte) if byte != b'\n' => {
                ChunkScanner::Trailer
            }
            _ => return None,
        })
    }
}

/// After the digits of a length: blanks, then an extension, then the line's end.
fn after_length(length: u64, is_blank: bool, byte: u8) -> Option<ChunkScanner> {
    match byte {
        b'\r' => Some(ChunkScanner::LengthEnd { length }),
        b'\n' => None,
        b' ' | b'\t' => Some(ChunkScanner::Extension { length, is_blank }),
        b';' => Some(ChunkScanner::Extension { length, is_blank: false }),
        _ if is_blank => None,
        _ => Some(ChunkScanner::Extension { length, is_blank }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], expected: Result<(usize, bool), FramingError>) {
        let mut whole = ChunkScanner::default();
        let taken = whole.advance(body).map(|taken| (taken, whole.is_over()));
        assert_eq!(taken, expected, "{}", body.escape_ascii());
    }

    #[test]
    fn a_body_ends_after_its_last_chunk_and_its_trailers() {
        check(b"3\r\nabc\r\n0\r\n\r\nGET", Ok((13, true)));
        check(b"A \t; x=\"y\"\r\n0123456789\r\n000\r\na: b\r\nc: d\r\n\r\n", Ok((43, true)));
        check(b"ffffffffffffffff\r\nab", Ok((20, false)));
    }

    #[test]
    fn what_others_might_read_otherwise_is_refused() {
        for body in [
            &b"\r\n"[..],
            b"3\nabc",
            b"3\r\nabcd\r\n",
            b"3\r\nabc\n",
            b"0x3\r\nabc",
            b"-1\r\n",
            b"3 4\r\n",
            b"3;x\nabc",
            b"3\rx",
            b"10000000000000000\r\n",
            b"0\r\nx: y\n\r\n",
            b"0\r\n\n",
            b"g\r\n",
        ] {
            check(body, Err(FramingError::Chunk));
        }
    }
}
