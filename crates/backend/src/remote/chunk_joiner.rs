//! Joins the chunks of an answer that came together (HTTP/1.1, RFC 9112, 7.1). Most upstreams send each event as a chunk of its own, and
//! hyper passes each chunk on by itself, which wakes its reader each time. How a body is cut into chunks means nothing.
//!
//! An answer that is framed in any unusual way is passed on as it is, and so is all that follows it on its connection.

use std::io::Write;

use memchr::memmem;

/// The most header lines of a head that is looked at.
const LINES_MAX: usize = 100;
/// Digits of the longest chunk's size that is looked at.
const DIGITS_MAX: u32 = 12;
const LINE_END: &[u8; 2] = b"\r\n";

/// Follows the answers of one connection.
#[derive(Debug)]
pub(super) struct ChunkJoiner(AnswerPosition);

/// Where in an answer the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerPosition {
    /// The first of a head.
    Head,
    /// In a body that has so many bytes more.
    Sized(u64),
    /// In a line with a chunk's size, of which so much was passed on.
    SizeLine(SizeLine),
    /// In a chunk that did not come whole. So many bytes of it are left, its line end included.
    Chunk(u64),
    /// Behind the last chunk.
    End,
    /// In something that is not followed.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SizeLine {
    size: u64,
    digits: u32,
    /// Its carriage return was there.
    returned: bool,
}

impl ChunkJoiner {
    /// At the beginning of a connection.
    pub(super) fn new() -> ChunkJoiner {
        ChunkJoiner(AnswerPosition::Head)
    }

    /// One that passes on everything as it is.
    pub(super) fn idle() -> ChunkJoiner {
        ChunkJoiner(AnswerPosition::Unknown)
    }

    /// True if it passes on everything from here as it is.
    pub(super) fn is_idle(&self) -> bool {
        self.0 == AnswerPosition::Unknown
    }

    /// Passes on what came, in as few chunks as it can have: never more bytes than came.
    pub(super) fn join(&mut self, mut came: &[u8], mut pass_on: impl FnMut(&[u8])) {
        while !came.is_empty() {
            let taken = match self.0 {
                AnswerPosition::Head => self.take_head(came),
                AnswerPosition::Sized(left) => self.take_sized(came, left),
                AnswerPosition::SizeLine(line) if line == SizeLine::default() => {
                    let joined = join_whole_chunks(came, &mut pass_on);
                    came = &came[joined..];
                    self.take_size_line(came, line)
                }
                AnswerPosition::SizeLine(line) => self.take_size_line(came, line),
                AnswerPosition::Chunk(left) => self.take_chunk(came, left),
                AnswerPosition::End => self.take_end(came),
                AnswerPosition::Unknown => came.len(),
            };
            let (taken, rest) = came.split_at(taken);
            if !taken.is_empty() {
                pass_on(taken);
            }
            came = rest;
        }
    }

    fn take_head(&mut self, came: &[u8]) -> usize {
        let Some(end) = memmem::find(came, b"\r\n\r\n") else {
            self.0 = AnswerPosition::Unknown;
            return came.len();
        };
        let head = &came[..end + 4];
        self.0 = behind_head(head).unwrap_or(AnswerPosition::Unknown);
        head.len()
    }

    fn take_sized(&mut self, came: &[u8], left: u64) -> usize {
        let taken = at_most(came, left);
        let left = left - taken as u64;
        self.0 = if left == 0 { AnswerPosition::Head } else { AnswerPosition::Sized(left) };
        taken
    }

    fn take_chunk(&mut self, came: &[u8], left: u64) -> usize {
        let taken = at_most(came, left);
        let left = left - taken as u64;
        self.0 = if left == 0 {
            AnswerPosition::SizeLine(SizeLine::default())
        } else {
            AnswerPosition::Chunk(left)
        };
        taken
    }

    fn take_size_line(&mut self, came: &[u8], mut line: SizeLine) -> usize {
        for (at, byte) in came.iter().enumerate() {
            self.0 = match (byte, line.returned) {
                (b'\r', false) if line.digits > 0 => {
                    line.returned = true;
                    AnswerPosition::SizeLine(line)
                }
                (b'\n', true) if line.size == 0 => AnswerPosition::End,
                (b'\n', true) => AnswerPosition::Chunk(line.size + LINE_END.len() as u64),
                (digit, false) if digit.is_ascii_hexdigit() && line.digits < DIGITS_MAX => {
                    line.size = line.size * 16 + hex_value(*digit);
                    line.digits += 1;
                    AnswerPosition::SizeLine(line)
                }
                _ => AnswerPosition::Unknown,
            };
            if !matches!(self.0, AnswerPosition::SizeLine(_)) {
                return at + 1;
            }
        }
        came.len()
    }

    /// Trailers are not followed.
    fn take_end(&mut self, came: &[u8]) -> usize {
        match came {
            [b'\r', b'\n', ..] => {
                self.0 = AnswerPosition::Head;
                LINE_END.len()
            }
            _ => {
                self.0 = AnswerPosition::Unknown;
                came.len()
            }
        }
    }
}

/// What follows a head; `None` if that is unusual.
fn behind_head(head: &[u8]) -> Option<AnswerPosition> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut response = httparse::Response::new(&mut lines);
    // Another end than ours has lines that end otherwise.
    if response.parse(head).ok()? != httparse::Status::Complete(head.len()) || response.version != Some(1) {
        return None;
    }
    match response.code? {
        100 | 102..=199 | 204 | 304 => return Some(AnswerPosition::Head),
        101 => return None,
        _ => {}
    }
    let values = |name: &'static str| {
        let lines = response.headers.iter();
        lines.filter(move |line| line.name.eq_ignore_ascii_case(name)).map(|line| line.value)
    };
    let (mut codings, mut lengths) = (values("transfer-encoding"), values("content-length"));
    match (codings.next(), lengths.next(), codings.next().or(lengths.next())) {
        (Some(coding), None, None) if coding.eq_ignore_ascii_case(b"chunked") => {
            Some(AnswerPosition::SizeLine(SizeLine::default()))
        }
        (None, Some(length), None) => {
            let digits =
                std::str::from_utf8(length).ok().filter(|text| text.bytes().all(|it| it.is_ascii_digit()))?;
            let length = digits.parse().ok()?;
            Some(if length == 0 { AnswerPosition::Head } else { AnswerPosition::Sized(length) })
        }
        _ => None,
    }
}

/// Passes on the chunks that are there whole, as one; how many bytes they took. The last chunk is none of them.
fn join_whole_chunks(came: &[u8], pass_on: &mut impl FnMut(&[u8])) -> usize {
    let (mut end, mut size) = (0, 0);
    while let Some((data, next)) = whole_chunk(&came[end..]) {
        (end, size) = (end + next, size + data.len());
    }
    if end == 0 {
        return 0;
    }
    let mut line = [0; 2 * size_of::<usize>() + LINE_END.len()];
    let mut room = &mut line[..];
    // It has room for any size.
    let _ = write!(room, "{size:x}\r\n");
    let left = room.len();
    pass_on(&line[..line.len() - left]);
    let mut at = 0;
    while at < end
        && let Some((data, next)) = whole_chunk(&came[at..end])
    {
        pass_on(data);
        at += next;
    }
    pass_on(LINE_END);
    end
}

/// The data of the chunk that stands here whole and is not the last, and how long it is with its lines.
fn whole_chunk(came: &[u8]) -> Option<(&[u8], usize)> {
    let digits = came.iter().take(DIGITS_MAX as usize).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let size = came[..digits].iter().fold(0, |size, digit| size * 16 + hex_value(*digit));
    let behind_line = came[digits..].strip_prefix(LINE_END).filter(|_| size > 0)?;
    let (data, rest) = behind_line.split_at_checked(usize::try_from(size).ok()?)?;
    let rest = rest.strip_prefix(LINE_END)?;
    Some((data, came.len() - rest.len()))
}

fn at_most(came: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(came.len(), |left| left.min(came.len()))
}

fn hex_value(digit: u8) -> u64 {
    u64::from((digit as char).to_digit(16).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// What comes out where it comes in so many pieces.
    fn joined(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut joiner, mut out) = (ChunkJoiner::new(), Vec::new());
        for piece in pieces {
            let before = out.len();
            joiner.join(piece, |bytes| out.extend_from_slice(bytes));
            assert!(out.len() - before <= piece.len(), "never more than came");
        }
        out
    }

    fn check(came: &str, expected: &str) {
        let out = joined(&[came.as_bytes()]);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    fn unchanged(came: &str) {
        check(came, came);
    }

    #[test]
    fn chunks_that_came_together_are_one() {
        check(
            &format!("{HEAD}5\r\nhello\r\n0B\r\n and others\r\n0\r\n\r\n"),
            &format!("{HEAD}10\r\nhello and others\r\n0\r\n\r\n"),
        );
    }

    #[test]
    fn what_did_not_come_whole_is_passed_on_as_it_is() {
        let first = format!("{HEAD}1\r\na\r\n1\r\nb\r\n1");
        let out = joined(&[
            first.as_bytes(),
            b"0\r",
            b"\n0123456789",
            b"abcdef\r",
            b"\n1\r\nc\r\n1\r\nd\r\n0\r\n",
            b"\r\n",
        ]);
        let expected = format!("{HEAD}2\r\nab\r\n10\r\n0123456789abcdef\r\n2\r\ncd\r\n0\r\n\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_next_answer_of_a_connection_is_followed_too() {
        let chunks = "1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
        let heads = [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n1\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        ];
        for head in heads {
            check(&format!("{head}{HEAD}{chunks}"), &format!("{head}{HEAD}2\r\nab\r\n0\r\n\r\n"));
        }
    }

    #[test]
    fn nothing_unusual_is_touched() {
        let chunks = "1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
        for line in [
            "transfer-encoding: gzip, chunked",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 5",
            "content-length: 1\r\ncontent-length: 2",
            "content-length: many",
            "content-length: +5",
            "connection: close",
        ] {
            unchanged(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n{chunks}"));
        }
        unchanged(&format!("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n1\r\na\r\n\r\n{chunks}"));
        unchanged(&format!("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
        unchanged(&format!("HTTP/1.1 101 Switching Protocols\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
        for body in [
            "1;name=value\r\na\r\n1;name=value\r\nb\r\n0\r\n\r\n",
            "1\na\n1\nb\n0\n\n",
            " 1\r\na\r\n 1\r\nb\r\n0\r\n\r\n",
            "\r\na\r\n1\r\nb\r\n0\r\n\r\n",
            "1\r\nab1\r\nc\r\n0\r\n\r\n",
            "0\r\nchecksum: 1\r\n\r\nHTTP/1.1 200 OK\r\n",
            "fffffffffffffffff\r\na\r\n1\r\nb\r\n",
        ] {
            unchanged(&format!("{HEAD}{body}"));
        }
    }

    /// The bodies of a connection's answers, as RFC 9112 reads them.
    fn bodies(mut stream: &[u8]) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while !stream.is_empty() {
            stream = stream.strip_prefix(HEAD.as_bytes()).unwrap();
            let mut body = Vec::new();
            loop {
                let line = memmem::find(stream, LINE_END).unwrap();
                let size = usize::from_str_radix(std::str::from_utf8(&stream[..line]).unwrap(), 16).unwrap();
                body.extend_from_slice(&stream[line + 2..line + 2 + size]);
                stream = stream[line + 2 + size..].strip_prefix(LINE_END).unwrap();
                if size == 0 {
                    break;
                }
            }
            bodies.push(body);
        }
        bodies
    }

    proptest! {
        #[test]
        fn no_body_is_changed_wherever_it_was_cut(
            answers in vec(vec(vec(any::<u8>(), 1..40), 0..12), 1..4),
            cuts in vec(1..60_usize, 0..40),
        ) {
            let mut came = Vec::new();
            for chunks in &answers {
                came.extend_from_slice(HEAD.as_bytes());
                for chunk in chunks {
                    came.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                    came.extend_from_slice(chunk);
                    came.extend_from_slice(LINE_END);
                }
                came.extend_from_slice(b"0\r\n\r\n");
            }
            let (mut pieces, mut rest) = (Vec::new(), &came[..]);
            for cut in cuts {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            pieces.push(rest);
            let expected: Vec<Vec<u8>> = answers.iter().map(|chunks| chunks.concat()).collect();
            prop_assert_eq!(bodies(&joined(&pieces)), expected);
        }
    }
}
