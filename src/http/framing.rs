//! Where each request of a connection begins and ends (RFC 9112), more strictly than hyper reads it. What a proxy before us might
//! read otherwise is refused: two that disagree about where a request ends can be made to mix up the requests of two callers.

mod chunks;

use memchr::memchr2;

use chunks::ChunkScanner;

/// What a request's head may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeadLimits {
    /// Bytes, from the first of the request line to the end of the empty line.
    pub(super) bytes: usize,
    /// Header lines.
    pub(super) lines: usize,
}

/// Why a request is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramingError {
    #[error(
        "the head has a line that does not end with a carriage return and a line feed; end each line with both"
    )]
    LineEnd,
    #[error(
        "a header line is folded, or has no colon right after its name; send each header on a line of its own"
    )]
    HeaderLine,
    #[error(
        "Transfer-Encoding must be there once at most, and say exactly chunked; send the body so, or with Content-Length"
    )]
    TransferEncoding,
    #[error("HTTP/1.0 has no Transfer-Encoding; send Content-Length")]
    OldVersion,
    #[error("there are both Transfer-Encoding and Content-Length; send one of them")]
    TwoLengths,
    #[error("Content-Length must be there once at most, and be digits alone")]
    ContentLength,
    #[error("the head has more than {0} bytes; send less in its headers")]
    HeadTooLarge(usize),
    #[error("there are more than {0} header lines; send fewer")]
    TooManyHeaders(usize),
    #[error("the body's chunks are not formed as RFC 9112 has them")]
    Chunk,
}

/// Follows the requests of one connection, byte by byte.
#[derive(Debug)]
pub(super) struct RequestFraming {
    limits: HeadLimits,
    position: Position,
}

/// Where in a request the next byte is.
#[derive(Debug)]
enum Position {
    Head(HeadScanner),
    /// In a body that has so many bytes more, at least one.
    Sized(u64),
    Chunked(ChunkScanner),
}

impl RequestFraming {
    /// A connection that has sent nothing.
    pub(super) fn new(limits: HeadLimits) -> RequestFraming {
        RequestFraming { limits, position: Position::Head(HeadScanner::default()) }
    }

    /// True if the next byte belongs to a head.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.position, Position::Head(_))
    }

    /// Looks for the end of the head in the next bytes: how many of them are its last, if it ends there.
    ///
    /// # Errors
    /// A line that ends wrongly, or too many bytes.
    pub(super) fn scan_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, FramingError> {
        match &mut self.position {
            Position::Head(scan) => scan.advance(bytes, self.limits.bytes),
            Position::Sized(_) | Position::Chunked(_) => Ok(Some(0)),
        }
    }

    /// Takes a head whose end was found. What follows is its body, if it has one.
    ///
    /// # Errors
    /// Whatever makes it unclear where the body ends, or too many lines.
    pub(super) fn begin_body(&mut self, head: &[u8]) -> Result<(), FramingError> {
        self.position = match body_length(head, self.limits.lines)? {
            BodyLength::Bytes(0) => Position::Head(HeadScanner::default()),
            BodyLength::Bytes(length) => Position::Sized(length),
            BodyLength::Chunked => Position::Chunked(ChunkScanner::default()),
        };
        Ok(())
    }

    /// Takes the next bytes of a body: how many of them belong to it.
    ///
    /// # Errors
    /// [`FramingError::Chunk`].
    pub(super) fn advance_body(&mut self, bytes: &[u8]) -> Result<usize, FramingError> {
        let (taken, is_over) = match &mut self.position {
            Position::Head(_) => return Ok(0),
            Position::Sized(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                (taken, *left == 0)
            }
            Position::Chunked(scan) => {
                let taken = scan.advance(bytes)?;
                (taken, scan.is_over())
            }
        };
        if is_over {
            self.position = Position::Head(HeadScanner::default());
        }
        Ok(taken)
    }
}

/// Looks for a head's end.
#[derive(Debug, Default)]
struct HeadScanner {
    /// All bytes so far, and those of the line that has not ended.
    bytes: usize,
    line: usize,
    last: u8,
    /// True after the first line that is not empty: empty ones before it say nothing.
    has_begun: bool,
}

impl HeadScanner {
    fn advance(&mut self, bytes: &[u8], most: usize) -> Result<Option<usize>, FramingError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.last != b'\r' {
                // Up to the end of its line a byte is as good as any other.
                let plain = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                self.line += plain;
                self.take(&mut rest, plain, most)?;
            }
            let Some(&byte) = rest.first() else { break };
            self.take(&mut rest, 1, most)?;
            // A carriage return stands before a line feed, and nowhere else.
            if (self.last == b'\r') != (byte == b'\n') {
                return Err(FramingError::LineEnd);
            }
            self.last = byte;
            if byte != b'\n' {
                self.line += 1;
                continue;
            }
            let is_empty = self.line == 1;
            self.line = 0;
            if is_empty && self.has_begun {
                return Ok(Some(bytes.len() - rest.len()));
            }
            self.has_begun |= !is_empty;
        }
        Ok(None)
    }

    /// Counts so many of the bytes that are left.
    fn take(&mut self, rest: &mut &[u8], count: usize, most: usize) -> Result<(), FramingError> {
        self.bytes += count;
        *rest = &rest[count..];
        if self.bytes > most { Err(FramingError::HeadTooLarge(most)) } else { Ok(()) }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum BodyLength {
    Bytes(u64),
    Chunked,
}

/// How long the body of a whole head is (RFC 9112, section 6.3), where that is beyond doubt.
fn body_length(head: &[u8], lines_max: usize) -> Result<BodyLength, FramingError> {
    // Of a line only its end is taken off: one of blanks is no empty one, but goes on with the line before it.
    let lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut lines = lines.filter(|line| !line.is_empty());
    let is_old = lines.next().is_some_and(|first| first.trim_ascii_end().ends_with(b"HTTP/1.0"));
    let (mut encoding, mut length) = (None, None);
    for (number, line) in lines.enumerate() {
        if number >= lines_max {
            return Err(FramingError::TooManyHeaders(lines_max));
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(FramingError::HeaderLine)?;
        let (name, value) = (&line[..colon], trimmed(&line[colon + 1..]));
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(FramingError::HeaderLine);
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let is_chunked = value.eq_ignore_ascii_case(b"chunked");
            if encoding.replace(value).is_some() || !is_chunked {
                return Err(FramingError::TransferEncoding);
            }
        } else if name.eq_ignore_ascii_case(b"content-length")
            && length.replace(digits(value).ok_or(FramingError::ContentLength)?).is_some()
        {
            return Err(FramingError::ContentLength);
        }
    }
    match (encoding, length) {
        (Some(_), Some(_)) => Err(FramingError::TwoLengths),
        (Some(_), None) if is_old => Err(FramingError::OldVersion),
        (Some(_), None) => Ok(BodyLength::Chunked),
        (None, length) => Ok(BodyLength::Bytes(length.unwrap_or(0))),
    }
}

/// Without the spaces and tabs around it, which alone may stand there.
fn trimmed(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

fn digits(value: &[u8]) -> Option<u64> {
    let text =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { bytes: 256, lines: 4 };

    /// The lengths of the requests of a stream that comes in pieces of so many bytes.
    fn requests(stream: &[u8], piece: usize) -> Result<Vec<usize>, FramingError> {
        let mut framing = RequestFraming::new(LIMITS);
        let (mut head, mut length, mut found) = (Vec::new(), 0, Vec::new());
        for piece in stream.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = if framing.is_in_head() {
                    let end = framing.scan_head(rest)?;
                    head.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
                    if end.is_some() {
                        framing.begin_body(&std::mem::take(&mut head))?;
                    }
                    end.unwrap_or(rest.len())
                } else {
                    framing.advance_body(rest)?
                };
                (length, rest) = (length + taken, &rest[taken..]);
                if framing.is_in_head() && head.is_empty() {
                    found.push(std::mem::take(&mut length));
                }
            }
        }
        Ok(found)
    }

    /// The same however it is cut.
    fn check(stream: &str, expected: &Result<Vec<usize>, FramingError>) {
        for piece in [1, 2, 3, 7, 1 << 10] {
            assert_eq!(&requests(stream.as_bytes(), piece), expected, "{stream:?} in pieces of {piece}");
        }
    }

    fn refused(headers: &str, error: FramingError) {
        check(&format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n"), &Err(error));
    }

    #[test]
    fn requests_that_follow_each_other_are_told_apart() {
        let (first, second) =
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nG\n\r\n ");
        let third = "\r\nPOST / HTTP/1.1\r\ntransfer-encoding: \tChunked \r\n\r\n5;a=\"b\"\r\nGET /\r\n0\r\nx: y\r\n\r\n";
        check(
            &[first, second, third, first].concat(),
            &Ok(vec![first.len(), second.len(), third.len(), first.len()]),
        );
    }

    #[test]
    fn what_leaves_doubt_where_a_body_ends_is_refused() {
        for encoding in [
            "gzip, chunked",
            "chunked, chunked",
            "identity",
            "xchunked",
            "\u{b}chunked",
            "chunked;q=1",
            "",
            "\"chunked\"",
        ] {
            refused(&format!("Transfer-Encoding: {encoding}"), FramingError::TransferEncoding);
        }
        refused("Transfer-Encoding: chunked\r\ntransfer-encoding: chunked", FramingError::TransferEncoding);
        for length in ["+5", "-1", "5,5", "0x5", "", "5 5", "99999999999999999999", "٣"] {
            refused(&format!("Content-Length: {length}"), FramingError::ContentLength);
        }
        refused("Content-Length: 5\r\nContent-Length: 5", FramingError::ContentLength);
        refused("Content-Length: 5\r\nTransfer-Encoding: chunked", FramingError::TwoLengths);
        refused("Transfer-Encoding: chunked\r\nContent-Length: 5", FramingError::TwoLengths);
        refused("Transfer-Encoding : chunked", FramingError::HeaderLine);
        refused("x: y\r\n Transfer-Encoding: chunked", FramingError::HeaderLine);
        refused("nonsense", FramingError::HeaderLine);
        refused("x: y\r\n \t\r\nTransfer-Encoding: chunked", FramingError::HeaderLine);
        check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", &Err(FramingError::OldVersion));
    }

    #[test]
    fn a_line_feed_or_a_carriage_return_alone_is_refused_at_once() {
        for head in [
            "GET / HTTP/1.1\nHost: a",
            "GET / HTTP/1.1\r\nHost: a\n",
            "\n",
            "GET / HTTP/1.1\r\nHost: a\rb",
            "\r\r",
        ] {
            check(head, &Err(FramingError::LineEnd));
        }
    }

    #[test]
    fn a_head_may_have_as_many_bytes_and_lines_as_its_limits_say_and_no_more() {
        let sized = |bytes: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(bytes - 18));
        check(&sized(256), &Ok(vec![256]));
        check(&sized(257), &Err(FramingError::HeadTooLarge(256)));
        refused(
            &["a: b"; 4]
                .join("\r\n")
                .replace("a: b\r\na: b\r\na: b\r\na: b", "a: b\r\na: b\r\na: b\r\na: b\r\nc: d"),
            FramingError::TooManyHeaders(4),
        );
    }
}
