//! Reads an answer by its bytes: its status, where it ends, and how many events and words it has.

/// What is known of an answer so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// Lines that begin with `data:`.
    pub(super) events: u64,
    /// Words of the answer.
    pub(super) words: u64,
    /// Words of a thought.
    pub(super) thoughts: u64,
    /// The last event was the one that ends a stream.
    pub(super) is_ended: bool,
}

/// The beginning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) length: Length,
    pub(super) closes: bool,
    /// Bytes of the head.
    pub(super) bytes: usize,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunked,
    UntilClosed,
}

impl Head {
    /// The head that these bytes begin with, once it is whole.
    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
        let head = bytes[..end].to_ascii_lowercase();
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let status = number(lines.next()?.split(|byte| *byte == b' ').nth(1)?);
        let mut parsed = Head {
            status: u16::try_from(status).unwrap_or(0),
            length: Length::UntilClosed,
            closes: false,
            bytes: end + 4,
        };
        for line in lines {
            if let Some(value) = line.strip_prefix(b"content-length:") {
                parsed.length = Length::Bytes(number(value.trim_ascii()));
            } else if line == b"transfer-encoding: chunked" {
                parsed.length = Length::Chunked;
            } else if line == b"connection: close" {
                parsed.closes = true;
            }
        }
        Some(parsed)
    }
}

fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |sum, digit| u64::wrapping_add(u64::wrapping_mul(sum, 10), u64::from(digit - b'0')))
}

/// A body as it arrives.
#[derive(Debug)]
pub(super) struct BodyReader {
    place: Place,
    line: Vec<u8>,
    content: Content,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Bytes that are left of a body whose length is known.
    Rest(u64),
    /// The line with a chunk's size; the size so far, and whether an extension has begun.
    Size(u64, bool),
    /// Bytes that are left of a chunk.
    Chunk(u64),
    /// The end of line behind a chunk.
    ChunkEnd,
    /// What follows the last chunk: bytes of its line.
    Trailer(usize),
    UntilClosed,
    End,
}

impl BodyReader {
    pub(super) fn new(length: Length) -> BodyReader {
        let place = match length {
            Length::Bytes(0) => Place::End,
            Length::Bytes(bytes) => Place::Rest(bytes),
            Length::Chunked => Place::Size(0, false),
            Length::UntilClosed => Place::UntilClosed,
        };
        BodyReader { place, line: Vec::new(), content: Content::default() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.place == Place::End
    }

    /// What is known of the answer so far.
    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// The last line, which has no end, and what is known of the answer then.
    pub(super) fn finish(mut self) -> Content {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.content.read(&line);
        }
        self.content
    }

    /// Takes what arrived; what is left of it belongs to nothing.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first().copied() {
            let (place, taken) = match self.place {
                Place::End => return,
                Place::UntilClosed => {
                    self.data(bytes);
                    (Place::UntilClosed, bytes.len())
                }
                Place::Rest(left) => {
                    let taken = self.take(bytes, left);
                    let left = left - taken as u64;
                    (if left == 0 { Place::End } else { Place::Rest(left) }, taken)
                }
                Place::Chunk(left) => {
                    let taken = self.take(bytes, left);
                    let left = left - taken as u64;
                    (if left == 0 { Place::ChunkEnd } else { Place::Chunk(left) }, taken)
                }
                Place::Size(size, extended) => (size_line(size, extended, first), 1),
                Place::ChunkEnd => (if first == b'\n' { Place::Size(0, false) } else { Place::ChunkEnd }, 1),
                Place::Trailer(length) => (trailer_line(length, first), 1),
            };
            self.place = place;
            bytes = &bytes[taken..];
        }
    }

    fn take(&mut self, bytes: &[u8], left: u64) -> usize {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.data(&bytes[..taken]);
        taken
    }

    /// Reads whole lines where they lie; only what a piece breaks apart is copied.
    fn data(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            if self.line.is_empty() {
                self.content.read(&bytes[..end]);
            } else {
                self.line.extend_from_slice(&bytes[..end]);
                let line = std::mem::take(&mut self.line);
                self.content.read(&line);
            }
            bytes = &bytes[end + 1..];
        }
        self.line.extend_from_slice(bytes);
    }
}

fn size_line(size: u64, extended: bool, byte: u8) -> Place {
    match byte {
        b'\n' if size == 0 => Place::Trailer(0),
        b'\n' => Place::Chunk(size),
        b';' => Place::Size(size, true),
        digit if !extended && digit.is_ascii_hexdigit() => {
            let value = char::from(digit).to_digit(16).map_or(0, u64::from);
            Place::Size((size << 4) | value, false)
        }
        _ => Place::Size(size, extended),
    }
}

fn trailer_line(length: usize, byte: u8) -> Place {
    match byte {
        b'\n' if length == 0 => Place::End,
        b'\n' => Place::Trailer(0),
        b'\r' => Place::Trailer(length),
        _ => Place::Trailer(length + 1),
    }
}

impl Content {
    fn read(&mut self, line: &[u8]) {
        if line.starts_with(b"data:") {
            self.events += 1;
            self.is_ended = is_last(line);
        }
        // One pass over the line for both.
        for at in memchr::memchr2_iter(b'#', b'~', line) {
            if line[at] == b'#' {
                self.words += 1;
            } else {
                self.thoughts += 1;
            }
        }
    }
}

/// The event by which a stream of one of the three APIs says that it is whole.
fn is_last(line: &[u8]) -> bool {
    line.starts_with(b"data: [DONE]")
        || (line.len() > b"data: {}".len()
            && [&b"\"message_stop\""[..], b"\"response.completed\""]
                .iter()
                .any(|name| memchr::memmem::find(line, name).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        16\r\ndata: {\"a\":\"x#\"}\n\ndata\r\n10;x=1\r\n: {\"b\":\"y~z#\"}\n\n\r\n8\r\n: quiet\n\r\nE\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

    fn read(pieces: &[&[u8]]) -> (bool, Content) {
        let head = Head::parse(STREAM).unwrap();
        assert_eq!((head.status, head.length), (200, Length::Chunked));
        let mut reader = BodyReader::new(head.length);
        for piece in pieces {
            reader.read(piece);
        }
        (reader.is_done(), reader.finish())
    }

    #[test]
    fn events_and_words_are_the_same_however_a_stream_is_broken_up() {
        let body = &STREAM[Head::parse(STREAM).unwrap().bytes..];
        let expected = (true, Content { events: 3, words: 2, thoughts: 1, is_ended: true });
        assert_eq!(read(&[body]), expected);
        for at in 0..body.len() {
            assert_eq!(read(&[&body[..at], &body[at..]]), expected, "{at}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn a_plain_answer_ends_where_its_length_says() {
        let answer = b"HTTP/1.1 503 Busy\r\ncontent-length: 6\r\nconnection: close\r\n\r\n{\"a#\"}more";
        let head = Head::parse(answer).unwrap();
        assert_eq!((head.status, head.length, head.closes), (503, Length::Bytes(6), true));
        let mut reader = BodyReader::new(head.length);
        reader.read(&answer[head.bytes..]);
        assert!(reader.is_done());
        assert_eq!(reader.finish(), Content { words: 1, ..Content::default() });
    }

    #[test]
    fn a_head_that_has_not_ended_is_none() {
        assert_eq!(Head::parse(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n"), None);
    }
}
