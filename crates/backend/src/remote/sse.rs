//! Server-sent events, byte by byte and within limits.
//!
//! The line rules of the WHATWG's specification, except that an upstream without bounds is an error and that
//! the data stays bytes: the JSON parser checks it later. `id` and `retry` mean nothing to us.
//!
//! What an event is called its data says as well, in every API that we read, but for errors: some servers name an event `error` whose
//! data does not, and older ones of llama.cpp write `error: {…}` in place of `data: {…}`. The data of both becomes the member `error`,
//! where that is asked for.

use std::collections::VecDeque;

use memchr::{memchr, memchr2};
use serde_json::{Value, json};

/// How long a line and an event may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// The most bytes of one line.
    pub line: usize,
    /// The most bytes of one event's data.
    pub event: usize,
}

impl Default for SseLimits {
    fn default() -> SseLimits {
        // A picture comes in one line.
        SseLimits { line: 4 << 20, event: 4 << 20 }
    }
}

/// The longest line whose buffer is kept for the next.
const LINE_KEPT: usize = 8 << 10;

/// An event's `data` lines, joined by line feeds. Events without data are not reported.
pub(super) type SseData = Vec<u8>;

/// The upstream sent more than is allowed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseTooLarge {
    /// In one line.
    #[error("the upstream sent a line of more than {0} bytes")]
    Line(usize),
    /// In one event.
    #[error("the upstream sent an event of more than {0} bytes")]
    Event(usize),
}

/// Turns the bytes of a response into events, wherever they are cut.
#[derive(Debug, Default)]
pub(super) struct SseScanner {
    limits: SseLimits,
    line: Vec<u8>,
    event: SseData,
    /// The event has a data line, if only an empty one.
    has_data: bool,
    /// What is called an error is to say so itself.
    reads_errors: bool,
    /// The event is called an error.
    is_error: bool,
    /// The last byte was a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    /// A byte order mark may only stand in front of everything.
    past_first_line: bool,
    #[cfg(test)]
    work: usize,
}

impl SseScanner {
    /// A scanner at the start of a response.
    pub(super) fn new(limits: SseLimits) -> SseScanner {
        SseScanner { limits, ..SseScanner::default() }
    }

    /// The same, which makes the data of what is called an error say so.
    pub(super) fn reading_errors(self) -> SseScanner {
        SseScanner { reads_errors: true, ..self }
    }

    /// Takes the next bytes and appends the events that they complete.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        events: &mut VecDeque<SseData>,
    ) -> Result<(), SseTooLarge> {
        #[cfg(test)]
        (self.work += bytes.len());
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            if self.line.is_empty() {
                self.whole_line(&bytes[..end], events)?;
            } else {
                self.extend_line(&bytes[..end])?;
                self.end_line(events)?;
            }
            let rest = &bytes[end + 1..];
            self.after_return = bytes[end] == b'\r' && rest.is_empty();
            bytes = if bytes[end] == b'\r' { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
        }
        self.extend_line(bytes)
    }

    /// What stood at the end without the blank line that completes an event; `None` where nothing did.
    pub(super) fn finish(mut self) -> Result<Option<SseData>, SseTooLarge> {
        if !self.line.is_empty() {
            self.end_line(&mut VecDeque::new())?;
        }
        Ok(self.has_data.then_some(self.event))
    }

    /// Takes a line that came in one piece, as most do.
    fn whole_line(&mut self, line: &[u8], events: &mut VecDeque<SseData>) -> Result<(), SseTooLarge> {
        self.check_line(line.len())?;
        let text = self.without_mark(line);
        self.text(text, events)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), SseTooLarge> {
        self.check_line(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check_line(&self, more: usize) -> Result<(), SseTooLarge> {
        let is_full = self.line.len() + more > self.limits.line;
        if is_full { Err(SseTooLarge::Line(self.limits.line)) } else { Ok(()) }
    }

    fn end_line(&mut self, events: &mut VecDeque<SseData>) -> Result<(), SseTooLarge> {
        let mut line = std::mem::take(&mut self.line);
        #[cfg(test)]
        (self.work += line.len());
        let text = self.without_mark(&line);
        if text.len() > LINE_KEPT && !self.has_data && text.starts_with(b"data: ") {
            // Most large events are one such line: it becomes the event, and is not copied.
            let start = line.len() - text.len() + b"data: ".len();
            line.drain(..start);
            return self.whole_data(line);
        }
        self.text(text, events)?;
        // The buffer is kept, so that a long stream does not allocate for every line, but not what a very long line took.
        if line.capacity() <= LINE_KEPT {
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    /// A line without the byte order mark that the first may begin with.
    fn without_mark<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        let is_first = !std::mem::replace(&mut self.past_first_line, true);
        if is_first { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line }
    }

    /// Reads what stands in a line.
    fn text(&mut self, text: &[u8], events: &mut VecDeque<SseData>) -> Result<(), SseTooLarge> {
        if text.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        self.field(text)
    }

    fn end_event(&mut self, events: &mut VecDeque<SseData>) {
        let event = std::mem::take(&mut self.event);
        let is_error = std::mem::take(&mut self.is_error);
        if std::mem::take(&mut self.has_data) {
            events.push_back(if is_error { error_event(event) } else { event });
        }
    }

    fn field(&mut self, line: &[u8]) -> Result<(), SseTooLarge> {
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if name == b"data" {
            return self.data(value);
        }
        match name {
            b"event" if self.reads_errors => {
                self.is_error = value == b"error";
                Ok(())
            }
            b"error" if self.reads_errors => {
                self.is_error = true;
                self.data(value)
            }
            _ => Ok(()),
        }
    }

    /// The first data of an event.
    fn whole_data(&mut self, value: SseData) -> Result<(), SseTooLarge> {
        self.check_room(value.len())?;
        (self.event, self.has_data) = (value, true);
        Ok(())
    }

    fn data(&mut self, value: &[u8]) -> Result<(), SseTooLarge> {
        self.check_room(value.len())?;
        if std::mem::replace(&mut self.has_data, true) {
            self.event.push(b'\n');
        }
        self.event.extend_from_slice(value);
        Ok(())
    }

    fn check_room(&self, bytes: usize) -> Result<(), SseTooLarge> {
        let is_full = self.event.len() + bytes >= self.limits.event;
        if is_full { Err(SseTooLarge::Event(self.limits.event)) } else { Ok(()) }
    }
}

/// The data of an error, which says so itself.
fn error_event(data: SseData) -> SseData {
    let told: Option<Value> = serde_json::from_slice(&data).ok();
    let says_so = |told: &Value| told["type"] == "error" || !told["error"].is_null();
    match told {
        Some(told) if says_so(&told) => data,
        Some(told) => json!({ "error": told }).to_string().into_bytes(),
        None => json!({ "error": String::from_utf8_lossy(&data) }).to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let text = |event: SseData| String::from_utf8(event).unwrap();
        let mut scanner = SseScanner::new(SseLimits::default()).reading_errors();
        let mut events = VecDeque::new();
        for piece in pieces {
            scanner.feed(piece, &mut events).unwrap();
        }
        (events.into_iter().map(text).collect(), scanner.finish().unwrap().map(text))
    }

    /// The same events, whole, cut in two at every byte, in three around every byte, and byte by byte.
    fn check(stream: &str, expected: &[&str], rest: Option<&str>) {
        let bytes = stream.as_bytes();
        let expected =
            (expected.iter().map(ToString::to_string).collect::<Vec<_>>(), rest.map(ToString::to_string));
        assert_eq!(scan(&[bytes]), expected, "whole");
        for cut in 0..bytes.len() {
            assert_eq!(scan(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
            let around = [&bytes[..cut], &bytes[cut..=cut], &[][..], &bytes[cut + 1..]];
            assert_eq!(scan(&around), expected, "byte {cut} alone");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(scan(&single), expected, "byte by byte");
    }

    #[test]
    fn every_line_end_of_the_specification_ends_a_line() {
        check("data: a\n\ndata: b\n\n", &["a", "b"], None);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"], None);
        check("data: a\r\rdata: b\r\r", &["a", "b"], None);
        check("data: a\r\n\ndata: b\n\rdata: c\r\r\n", &["a", "b", "c"], None);
    }

    #[test]
    fn data_lines_are_joined_and_only_the_first_space_is_dropped() {
        check("data: YHOO\ndata: +2\ndata: 10\n\n", &["YHOO\n+2\n10"], None);
        check("data:test\n\ndata:  test\n\n", &["test", " test"], None);
    }

    #[test]
    fn data_without_a_colon_is_an_empty_line() {
        check("data\n\ndata\ndata\n\ndata:", &["", "\n"], Some(""));
    }

    #[test]
    fn comments_unknown_fields_and_events_without_data_are_passed_over() {
        check(": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\n", &["first", "second"], None);
        check(":\n\nevent: ping\n\nretry: 5\n\nnonsense\n\nDATA: x\n\n data: y\n\n", &[], None);
    }

    #[test]
    fn what_is_called_an_error_says_so_itself() {
        check("event: error\ndata: {\"message\":\"no\"}\n\n", &[r#"{"error":{"message":"no"}}"#], None);
        check("error: {\"code\":500}\n\ndata: a\n\n", &[r#"{"error":{"code":500}}"#, "a"], None);
        check("data: boom\nevent: error\n\n", &[r#"{"error":"boom"}"#], None);
        for told in [r#"{"type":"error","message":"no"}"#, r#"{"error":{"message":"no"}}"#] {
            check(&format!("event: error\ndata: {told}\n\n"), &[told], None);
        }
        check("event: error\n\nevent: message\ndata: a\n\n", &["a"], None);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_in_front_and_only_there() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"], None);
        check("\u{feff}\u{feff}data: a\n\n", &[], None);
        check("\u{feff}", &[], None);
    }

    #[test]
    fn characters_survive_every_cut() {
        check("data: grüße 🦀\n\n", &["grüße 🦀"], None);
    }

    #[test]
    fn what_stands_at_the_end_without_a_blank_line_is_told_apart() {
        check("data: a\n\ndata: [DONE]", &["a"], Some("[DONE]"));
        check("data: a\n\ndata: [DONE]\n", &["a"], Some("[DONE]"));
        check("data: a\n\n: bye", &["a"], None);
        check("", &[], None);
    }

    #[test]
    fn a_line_or_an_event_beyond_its_limit_is_refused() {
        let limits = SseLimits { line: 16, event: 32 };
        let feed = |text: &[u8]| SseScanner::new(limits).feed(text, &mut VecDeque::new());
        assert_eq!(feed(b"data: 0123456789"), Ok(()));
        assert_eq!(feed(b"data: 01234567890"), Err(SseTooLarge::Line(16)));
        assert_eq!(feed(&b"data: 0123456789\n".repeat(2)), Ok(()));
        assert_eq!(feed(&b"data: 0123456789\n".repeat(4)), Err(SseTooLarge::Event(32)));
        assert_eq!(feed(&b"data\n".repeat(40)), Err(SseTooLarge::Event(32)));
    }

    #[test]
    fn a_long_event_is_read_like_a_short_one() {
        let long = "x".repeat(LINE_KEPT + 1);
        for first in ["", " "] {
            let stream =
                format!("\u{feff}data: {first}{long}\ndata: b\n\ndata:{long}\n\ndata: a\ndata: {long}\n\n");
            let expected = [format!("{first}{long}\nb"), long.clone(), format!("a\n{long}")];
            assert_eq!(scan(&[stream.as_bytes()]), (expected.to_vec(), None));
        }
        let mut scanner = SseScanner::new(SseLimits { event: LINE_KEPT, ..SseLimits::default() });
        let line = format!("data: {long}\n");
        let refused = scanner.feed(line.as_bytes(), &mut VecDeque::new());
        assert_eq!(refused, Err(SseTooLarge::Event(LINE_KEPT)));
    }

    #[test]
    fn a_long_line_in_small_chunks_takes_work_in_proportion() {
        const LINE: usize = 8 << 20;
        let mut scanner = SseScanner::new(SseLimits { line: LINE + 6, event: LINE + 1 });
        let mut events = VecDeque::new();
        scanner.feed(b"data: ", &mut events).unwrap();
        for _ in 0..LINE / 1024 {
            scanner.feed(&[b'x'; 1024], &mut events).unwrap();
        }
        scanner.feed(b"\n\n", &mut events).unwrap();
        assert_eq!(events[0].len(), LINE);
        assert!(scanner.work < 3 * LINE, "{} bytes looked at", scanner.work);
    }
}
