//! A body that is written whole, or event by event.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::Events;

/// What the caller gets.
pub(super) enum Reply {
    Whole(Option<Bytes>),
    Events(EventReply),
}

/// When a stream waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pauses {
    pub(super) between: Option<Duration>,
    /// After so many events, for so long.
    pub(super) stall: Option<(usize, Duration)>,
}

/// A stream that is being written.
pub(super) struct EventReply {
    events: Events,
    next: usize,
    pauses: Pauses,
    due: Option<Pin<Box<Sleep>>>,
    /// Its place among the answers that are written at once.
    _place: Option<OwnedSemaphorePermit>,
}

impl Reply {
    pub(super) fn whole(body: Bytes) -> Reply {
        Reply::Whole(Some(body))
    }

    pub(super) fn events(events: Events, place: Option<OwnedSemaphorePermit>, pauses: Pauses) -> Reply {
        Reply::Events(EventReply { events, next: 0, pauses, due: None, _place: place })
    }
}

impl EventReply {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(due) = &mut self.due {
            ready!(due.as_mut().poll(context));
        }
        let Some(event) = self.events.get(self.next).cloned() else { return Poll::Ready(None) };
        self.next += 1;
        self.wait();
        Poll::Ready(Some(event))
    }

    /// Sets when the next event is due. Its rate is kept over the whole stream, however late one event was.
    fn wait(&mut self) {
        let stall = self.pauses.stall.filter(|(after, _)| *after == self.next).map(|(_, pause)| pause);
        let pause = self.pauses.between.unwrap_or_default() + stall.unwrap_or_default();
        if pause.is_zero() {
            self.due = None;
            return;
        }
        match &mut self.due {
            Some(due) => {
                let next = due.deadline() + pause;
                due.as_mut().reset(next);
            }
            None => self.due = Some(Box::pin(sleep_until(Instant::now() + pause))),
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Reply::Whole(body) => Poll::Ready(body.take()),
            Reply::Events(events) => events.poll_next(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Reply::Whole(body) => body.is_none(),
            Reply::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            Reply::Events(_) => SizeHint::default(),
        }
    }
}

/// The next piece of a request's body.
pub(super) async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}
