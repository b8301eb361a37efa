//! The event stream of an upstream's answer: bounded in time and in bytes. Its errors do not contain our key.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::{Failure, Fault};
use stint_types::chat::is_complete_json;
use stint_types::units::Tokens;

use super::answer_end::is_done;
use super::refusal;
use super::secret::Secret;
use super::settings::Settings;
use super::sse::{SseData, SseScanner};
use super::timeouts::UpstreamTimeouts;
use super::upstream_response::UpstreamResponse;

/// How much is scanned at once: a large piece would become thousands of events that wait for a slow caller.
const SCANNED_MAX: usize = 4 << 10;
/// What an upstream may send for a token of its limit, with all that stands around it.
const BYTES_PER_TOKEN: u64 = 4 << 10;
/// What it may send besides.
const BYTES_EXTRA: u64 = 8 << 20;

/// How an answer becomes events.
#[derive(Debug)]
enum AnswerFraming {
    /// It is a stream of them.
    Events(SseScanner),
    /// All of it has come.
    Ended,
}

/// An event stream that an upstream has begun, or an answer in one piece as a stream of one event. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct UpstreamEventStream {
    response: UpstreamResponse,
    /// What came and is not scanned yet.
    chunk: Bytes,
    framing: AnswerFraming,
    ready: VecDeque<SseData>,
    /// What no failure may repeat.
    secret: Option<Secret>,
    logs_messages: bool,
    timeouts: UpstreamTimeouts,
    /// How long to wait between two pieces, once there was one.
    idle: Duration,
    /// The most to wait for what comes next, however long that may be else.
    wait_max: Duration,
    /// How long its end may lag behind its last event.
    release_wait: Duration,
    /// How many more bytes may come.
    bytes_left: u64,
}

impl UpstreamEventStream {
    /// The stream that this response begins; `timeouts` hold until the answer begins.
    pub(super) fn new(
        response: UpstreamResponse,
        settings: &Settings,
        timeouts: UpstreamTimeouts,
    ) -> UpstreamEventStream {
        UpstreamEventStream {
            response,
            chunk: Bytes::new(),
            framing: AnswerFraming::Events(SseScanner::new(settings.limits).reading_errors()),
            ready: VecDeque::new(),
            secret: settings.api_key.clone(),
            logs_messages: settings.logs_messages,
            timeouts,
            idle: settings.idle,
            wait_max: Duration::MAX,
            release_wait: settings.release_wait,
            bytes_left: u64::MAX,
        }
    }

    /// The answer in one piece that was this response's body.
    pub(super) fn new_whole(
        response: UpstreamResponse,
        body: Vec<u8>,
        settings: &Settings,
        timeouts: UpstreamTimeouts,
    ) -> UpstreamEventStream {
        let (framing, ready) = (AnswerFraming::Ended, VecDeque::from([body]));
        UpstreamEventStream { framing, ready, ..UpstreamEventStream::new(response, settings, timeouts) }
    }

    /// True if all of it has come, and is not read yet: it was an answer in one piece.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.framing, AnswerFraming::Ended) && !self.ready.is_empty()
    }

    /// The same, of which no more may come than answers of so many tokens have.
    pub(super) fn with_token_limit(self, tokens: Tokens) -> UpstreamEventStream {
        let bytes_left = tokens.0.saturating_mul(BYTES_PER_TOKEN).saturating_add(BYTES_EXTRA);
        UpstreamEventStream { bytes_left, ..self }
    }

    /// The next event; `None` at a clean end. A stream that breaks off inside an event is a failure, unless
    /// only the blank line behind it is missing, as some upstreams leave it out at the end.
    pub(super) async fn next(&mut self) -> Result<Option<SseData>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if matches!(self.framing, AnswerFraming::Ended) {
                return Ok(None);
            }
            if !self.chunk.is_empty() {
                let part = self.chunk.split_to(self.chunk.len().min(SCANNED_MAX));
                self.feed(Some(&part))?;
                continue;
            }
            let idle = self.timeouts.idle.min(self.wait_max);
            let timeouts = UpstreamTimeouts { idle, ..self.timeouts };
            let chunk = timeouts.wait(self.response.chunk(), "fell silent").await?;
            match chunk.map_err(|_| refusal::broken())? {
                Some(chunk) => {
                    self.count_bytes(chunk.len())?;
                    self.chunk = chunk;
                }
                None => self.feed(None)?,
            }
        }
    }

    /// The answer has begun, or a thought that shows: from now on it is not silent for long.
    pub(super) fn start_idle_timeout(&mut self) {
        self.timeouts.idle = self.idle;
    }

    /// A thought goes on that does not show: until more of the answer comes, it may be silent.
    pub(super) fn stop_idle_timeout(&mut self) {
        self.timeouts.idle = Duration::MAX;
    }

    /// From now on it waits no longer than that for what comes next.
    pub(super) fn limit_wait(&mut self, wait_max: Duration) {
        self.wait_max = wait_max;
    }

    /// Nothing more of it is wanted; its connection is not used again.
    pub(super) fn abandon(&mut self) {
        self.framing = AnswerFraming::Ended;
    }

    /// What an event says is wrong, as it may be logged.
    pub(super) fn for_log(&self, failure: Failure) -> Failure {
        refusal::for_log(failure, self.secret.as_ref(), self.logs_messages)
    }

    /// Lets the connection be used again: takes the end of the stream, for which it waits only a moment.
    pub(super) async fn release(&mut self) {
        if matches!(self.framing, AnswerFraming::Ended) {
            return;
        }
        let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(self.release_wait, end).await;
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.bytes_left = left.ok_or_else(|| {
            let what =
                "the upstream sent more than any answer within its limit has: upstream_answer_too_large";
            Failure::new(Fault::Backend, what).retry_elsewhere()
        })?;
        Ok(())
    }

    fn feed(&mut self, chunk: Option<&[u8]>) -> Result<(), Failure> {
        let too_large = |error| Failure::new(Fault::Backend, format!("{error}: upstream_event_too_large"));
        match (chunk, &mut self.framing) {
            (Some(bytes), AnswerFraming::Events(scanner)) => {
                scanner.feed(bytes, &mut self.ready).map_err(too_large)
            }
            (_, AnswerFraming::Ended) => Ok(()),
            (None, _) => match std::mem::replace(&mut self.framing, AnswerFraming::Ended) {
                AnswerFraming::Events(scanner) => match scanner.finish().map_err(too_large)? {
                    Some(event) if is_done(&event) || is_whole_object(&event) => {
                        self.ready.push_back(event);
                        Ok(())
                    }
                    Some(_) => Err(refusal::truncated()),
                    None => Ok(()),
                },
                AnswerFraming::Ended => Ok(()),
            },
        }
    }
}

/// True where nothing of an event's JSON is missing.
fn is_whole_object(event: &[u8]) -> bool {
    event.starts_with(b"{") && std::str::from_utf8(event).is_ok_and(is_complete_json)
}
