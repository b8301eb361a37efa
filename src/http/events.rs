//! A request's updates out as server-sent events, written by the dialect's `StreamWriter`. `answer` calls it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::dialect::StreamWriter;
use super::error::ApiError;
use super::idempotency_key::StreamRecorder;
use super::judged_updates::{AnswerUpdate, JudgedUpdates};

/// What the log says of a request whose task ends without its last update.
pub(super) const NO_FINAL_REPORT: &str = "a request's task ended without a final update";

/// How much of what is there already goes out at once.
const BATCH_MAX: usize = 4 << 10;

/// How often others go first before what is there goes out alone: a write for each event costs more than all else about it.
const ARRIVING_YIELDS: usize = 3;

struct EventStream {
    updates: JudgedUpdates,
    writer: Box<dyn StreamWriter>,
    first: Option<AnswerUpdate>,
    /// True if a silence decided the answer's status: a comment goes out with it.
    is_silent: bool,
    heartbeat: Duration,
    /// There where the request has an idempotency key.
    recorder: Option<StreamRecorder>,
    done: bool,
}

/// The body of a streamed answer that begins with `first`. A comment is sent whenever nothing else was for as
/// long as `heartbeat`.
pub(super) fn stream(
    updates: JudgedUpdates,
    first: Option<AnswerUpdate>,
    writer: Box<dyn StreamWriter>,
    heartbeat: Duration,
    recorder: Option<StreamRecorder>,
) -> Body {
    let is_silent = first.is_none();
    let state = EventStream { updates, writer, first, is_silent, heartbeat, recorder, done: false };
    Body::from_stream(pieces(state))
}

fn pieces(state: EventStream) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // Boxed: the stream moves it with every piece.
    unfold(Box::new(state), |mut state| async move {
        let mut text = state.next().await?;
        // What waits to be written takes no more memory than it has bytes.
        text.shrink_to_fit();
        Some((Ok(Bytes::from(text)), state))
    })
}

impl EventStream {
    async fn next(&mut self) -> Option<String> {
        if self.done {
            return None;
        }
        if std::mem::take(&mut self.is_silent) {
            return Some(self.writer.keep_alive().to_owned());
        }
        let silent_until = Instant::now() + self.heartbeat;
        let mut batch = String::new();
        loop {
            if !batch.is_empty() {
                // What is there already goes out with it.
                self.first = self.next_arriving().await;
                if batch.len() >= BATCH_MAX || !matches!(self.first, Some(AnswerUpdate::Event(..))) {
                    return Some(batch);
                }
            }
            let update = match self.first.take() {
                Some(update) => Some(update),
                None => match self.next_before(silent_until).await {
                    Ok(update) => update,
                    Err(_) => return Some(self.writer.keep_alive().to_owned()),
                },
            };
            self.done = !matches!(update, Some(AnswerUpdate::Event(..) | AnswerUpdate::Restarted));
            let Some(update) = update else {
                // An end without an error would look like success.
                return Some(
                    self.writer.write_error(&ApiError::internal(self.updates.task.id(), NO_FINAL_REPORT)),
                );
            };
            let (text, cost) = self.write_update(update).await;
            self.record(&text, cost).await;
            if batch.is_empty() {
                batch = text;
            } else {
                batch.push_str(&text);
            }
            if self.done && !batch.is_empty() {
                return Some(batch);
            }
        }
    }

    /// An update in the API's own form, and what the answer cost where it ends it.
    async fn write_update(&mut self, update: AnswerUpdate) -> (String, Option<String>) {
        match update {
            AnswerUpdate::Event(choice, event) => (self.writer.write_event(choice, event), None),
            // A stream is not begun again.
            AnswerUpdate::Restarted => (String::new(), None),
            AnswerUpdate::Done(receipt) => {
                self.writer.before_end(&receipt).await;
                (self.writer.write_end(&receipt), receipt.cost.map(|cost| cost.to_string()))
            }
            AnswerUpdate::Failed(problem) => {
                if problem.is_unjudged() {
                    // That nobody could judge it is no answer to a repeat.
                    self.recorder = None;
                }
                let problem = problem.with_episode(self.updates.task.episode());
                (self.writer.write_error(&problem), None)
            }
        }
    }

    /// The next update, if it is there already or about to come: what one read of the upstream brought passes through two more
    /// tasks, an event at a time, and these go first.
    async fn next_arriving(&mut self) -> Option<AnswerUpdate> {
        for _ in 0..ARRIVING_YIELDS {
            if let Some(update) = self.updates.next_ready() {
                return Some(update);
            }
            tokio::task::yield_now().await;
        }
        self.updates.next_ready()
    }

    /// The next update, unless none comes until then.
    async fn next_before(&mut self, until: Instant) -> Result<Option<AnswerUpdate>, Elapsed> {
        if let Some(update) = self.updates.next_ready() {
            return Ok(Some(update));
        }
        tokio::time::timeout_at(until, self.updates.next()).await
    }

    /// Stores the answer before its end is sent, so that a caller who saw the end can rely on it.
    async fn record(&mut self, text: &str, cost: Option<String>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(text);
        }
        if self.done
            && let Some(recorder) = self.recorder.take()
        {
            recorder.finish(cost).await;
        }
    }
}
