//! Room for the bodies of all requests in flight together.
//!
//! A request takes its room before its body is read and gives it back when its answer is over. One that does not say how
//! long its body is takes as much as one may be.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{Request, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Settings;
use super::error::Problem;

/// Room is counted in pieces of so many bytes.
const PIECE: usize = 1 << 10;

/// Room that is taken.
pub(super) type Held = Arc<OwnedSemaphorePermit>;

/// What is left of the room.
#[derive(Debug, Clone)]
pub(super) struct Room {
    pieces: Arc<Semaphore>,
    body_max: usize,
}

impl Room {
    pub(super) fn new(settings: &Settings) -> Room {
        let pieces = pieces(settings.bodies_max).min(Semaphore::MAX_PERMITS);
        Room { pieces: Arc::new(Semaphore::new(pieces)), body_max: settings.body_max }
    }

    /// Room for what a request brings along beside its body, held until it is let go of.
    ///
    /// # Errors
    /// 503 where there is none.
    pub(super) fn more(&self, bytes: usize) -> Result<Held, Problem> {
        let wanted = u32::try_from(pieces(bytes)).unwrap_or(u32::MAX);
        self.pieces.clone().try_acquire_many_owned(wanted).map(Arc::new).map_err(|_| full())
    }

    /// The bytes that a request may bring. One that says it brings too many is refused unread, elsewhere.
    fn wanted(&self, request: &Request<Body>) -> usize {
        if HttpBody::is_end_stream(request.body()) {
            return 0;
        }
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        match length.map(str::parse::<usize>) {
            Some(Ok(length)) if length <= self.body_max => length,
            Some(_) => 0,
            None => self.body_max,
        }
    }
}

/// Answers 503 where there is no room. What is behind it may ask for more.
pub(super) async fn bounded(State(room): State<Room>, mut request: Request<Body>, next: Next) -> Response {
    let wanted = u32::try_from(pieces(room.wanted(&request))).unwrap_or(u32::MAX);
    let Ok(taken) = room.pieces.clone().try_acquire_many_owned(wanted) else {
        return full().into_response();
    };
    request.extensions_mut().insert(room);
    let answer = next.run(request).await;
    if answer.body().size_hint().exact().is_some() {
        return answer;
    }
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held = &taken;
            frame
        }))
    })
}

fn full() -> Problem {
    let message = "the requests in flight leave no room for what this one brings; try again shortly";
    Problem::overloaded(message.to_owned(), Duration::from_secs(1))
}

fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE)
}
