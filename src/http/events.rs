//! A flight's reports out as server-sent events, in the words of whichever API.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::unfold;
use futures_util::{FutureExt, Stream};
use tokio::time::Instant;

use crate::chat::ChoiceEvent;
use crate::gateway::{RequestReceipt, RequestTask, RequestUpdate};

use super::error::ApiError;
use super::idempotency_key::StreamRecorder;

/// What the log says of a flight that ends without its last report.
pub(super) const NO_FINAL_REPORT: &str = "a flight ended without saying how";

/// Writes the events of one answer.
pub(super) trait StreamWriter: Send {
    /// The text that one event of a choice puts on the wire; nothing for what is not to be shown.
    fn write_event(&mut self, choice: u32, event: ChoiceEvent) -> String;

    /// The text at the end of the answer.
    fn write_end(&mut self, receipt: &RequestReceipt) -> String;

    /// What has to be done before the end is told.
    fn before_end<'a>(&'a mut self, _: &'a RequestReceipt) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    /// What keeps a silent stream alive and is skipped by clients.
    fn keep_alive(&self) -> &'static str;

    /// The event of an error, after which nothing comes: a clean end would look like success.
    fn write_error(&self, problem: &ApiError) -> String;
}

struct EventStream {
    task: RequestTask,
    writer: Box<dyn StreamWriter>,
    first: Option<RequestUpdate>,
    /// True where a silence has decided for the answer's status: a comment goes out with it.
    is_silent: bool,
    heartbeat: Duration,
    /// Where the stream is under an idempotency key.
    recorder: Option<StreamRecorder>,
    done: bool,
}

/// The body of a streamed answer that begins with `first`. A comment is sent whenever nothing else was for as
/// long as `heartbeat`.
pub(super) fn stream(
    flight: RequestTask,
    first: Option<RequestUpdate>,
    chunks: Box<dyn StreamWriter>,
    heartbeat: Duration,
    kept: Option<StreamRecorder>,
) -> Body {
    let silent = first.is_none();
    let state = EventStream {
        task: flight,
        writer: chunks,
        first,
        is_silent: silent,
        heartbeat,
        recorder: kept,
        done: false,
    };
    Body::from_stream(pieces(state))
}

fn pieces(state: EventStream) -> impl Stream<Item = Result<Bytes, Infallible>> {
    unfold(state, |mut state| async move {
        let text = state.next().await?;
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
        loop {
            let report = match self.first.take() {
                Some(report) => Some(report),
                None => match tokio::time::timeout_at(silent_until, self.task.next()).await {
                    Ok(report) => report,
                    Err(_) => return Some(self.writer.keep_alive().to_owned()),
                },
            };
            self.done = !matches!(report, Some(RequestUpdate::Event(..)));
            let Some(report) = report else {
                // An end without an error would look like success.
                return Some(self.writer.write_error(&ApiError::internal(self.task.id(), NO_FINAL_REPORT)));
            };
            let (text, cost) = match report {
                RequestUpdate::Event(choice, event) => (self.writer.write_event(choice, event), None),
                RequestUpdate::Done(receipt) => {
                    self.writer.before_end(&receipt).await;
                    (self.writer.write_end(&receipt), Some(receipt.cost.to_string()))
                }
                RequestUpdate::Failed(refusal) => {
                    let problem = ApiError::from(refusal).with_episode(self.task.episode());
                    (self.writer.write_error(&problem), None)
                }
            };
            self.record(&text, cost).await;
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    /// The end is kept before it is told, so that whoever saw it can rely on it.
    async fn record(&mut self, text: &str, cost: Option<String>) {
        if let Some(kept) = &mut self.recorder {
            kept.push(text);
        }
        if self.done
            && let Some(kept) = self.recorder.take()
        {
            kept.finish(cost).await;
        }
    }
}
