//! One caller: asks, reads, judges what it got, and asks again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::scenario::{Api, Leaving, Scenario};

use super::arrivals::Arrivals;
use super::connection::Connection;
use super::request::RequestBytes;
use super::response::{BodyReader, Content};
use super::tally::{Ending, Tally, Timing};

/// After a connection was refused or broke, so that a gateway that is gone is not asked a million times.
const PAUSE: Duration = Duration::from_millis(20);
/// A connection that nobody has used for so long is given up, before the other side does.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// What all callers share.
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    pub(super) request: RequestBytes,
    pub(super) expected: Expected,
    pub(super) leaving: Option<Leaving>,
    pub(super) arrivals: Arrivals,
    pub(super) tally: Rc<RefCell<Tally>>,
    /// Connections that nobody uses. The last that was used is used first, as by clients that keep a pool.
    pub(super) idle: RefCell<VecDeque<(Connection, Instant)>>,
}

/// What an answer must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    words: u64,
    thoughts: u64,
    /// Its last events say again what the others said.
    is_repeated: bool,
    is_stream: bool,
    may_be_refused: bool,
    may_break_off: bool,
    thought_is_cut: bool,
}

/// What is left of a connection after a request.
enum After {
    Kept(Connection),
    Gone,
}

impl Caller {
    /// Asks until nothing is due any more.
    pub(super) async fn run(self: Rc<Caller>) {
        let mut bytes = Vec::new();
        while let Some(due) = self.arrivals.next().await {
            let number = self.tally.borrow_mut().begin();
            self.request.numbered(number, &mut bytes);
            let mut timing = Timing { due, first: None };
            let kept = self.kept();
            let asked = self.ask(kept, &bytes, number, &mut timing).await;
            let (after, ending, content) = asked.unwrap_or_else(|error| {
                let fault = Ending::Fault(format!("connection: {}", error.kind()));
                let ending = if self.expected.may_break_off { Ending::Left } else { fault };
                (After::Gone, ending, Content::default())
            });
            let is_fault = matches!(ending, Ending::Fault(_));
            self.tally.borrow_mut().end(ending, timing, content);
            if let After::Kept(connection) = after {
                self.idle.borrow_mut().push_back((connection, Instant::now()));
            } else if is_fault {
                sleep(PAUSE).await;
            }
        }
    }

    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        while idle.front().is_some_and(|(_, since)| since.elapsed() > IDLE_MAX) {
            idle.pop_front();
        }
        idle.pop_back().map(|(connection, _)| connection)
    }

    async fn ask(
        &self,
        kept: Option<Connection>,
        request: &[u8],
        number: u64,
        timing: &mut Timing,
    ) -> io::Result<(After, Ending, Content)> {
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        connection.write(request).await?;
        let (head, rest) = connection.head().await?;
        let mut reader = BodyReader::new(head.length);
        let leaving = self.leaving.filter(|leaving| number.is_multiple_of(leaving.every.max(1)));
        let mut last = None;
        self.take(&mut reader, &rest, &mut last, timing);
        while !reader.is_done() {
            if let Some(leaving) = leaving.filter(|leaving| reader.content().events >= leaving.after_events) {
                sleep(Duration::from_millis(leaving.stays_milliseconds)).await;
                return Ok((After::Gone, Ending::Left, reader.finish()));
            }
            let piece = connection.read().await?;
            if piece.is_empty() {
                break;
            }
            self.take(&mut reader, piece, &mut last, timing);
        }
        let is_whole = reader.is_done();
        let content = reader.finish();
        let after = if head.closes || !is_whole { After::Gone } else { After::Kept(connection) };
        Ok((after, self.expected.judge(head.status, is_whole, content), content))
    }

    /// Reads a piece of the body and counts its events.
    fn take(&self, reader: &mut BodyReader, piece: &[u8], last: &mut Option<Instant>, timing: &mut Timing) {
        if piece.is_empty() {
            return;
        }
        let before = reader.content().events;
        reader.read(piece);
        let count = reader.content().events - before;
        let now = Instant::now();
        timing.first.get_or_insert(now);
        if count > 0 {
            let gap = last.replace(now).map(|last| now - last);
            self.tally.borrow_mut().events(count, gap, now);
        }
    }
}

impl Expected {
    pub(super) fn of(scenario: &Scenario, words: usize) -> Expected {
        let load = &scenario.load;
        Expected {
            words: words as u64,
            thoughts: scenario.upstream.thoughts as u64,
            is_repeated: load.stream && load.api == Api::Responses,
            is_stream: load.stream,
            may_be_refused: load.may_be_refused,
            may_break_off: load.may_break_off,
            thought_is_cut: load.thought_is_cut,
        }
    }

    fn judge(self, status: u16, is_whole: bool, content: Content) -> Ending {
        match status {
            200 => {}
            429 | 503 if self.may_be_refused => return Ending::Refused,
            other => return Ending::Fault(format!("status {other}")),
        }
        let is_ended = is_whole && (content.is_ended || !self.is_stream);
        if !is_ended {
            let fault = Ending::Fault("an answer that broke off".to_owned());
            return if self.may_break_off { Ending::Left } else { fault };
        }
        let is_said = content.words == self.words
            || (self.is_repeated && content.words > 0 && content.words.is_multiple_of(self.words));
        if !is_said {
            return Ending::Fault(format!("{} words in place of {}", content.words, self.words));
        }
        if self.thought_is_cut && content.thoughts >= self.thoughts {
            return Ending::Fault("a thought that was not cut".to_owned());
        }
        Ending::Answered
    }
}
