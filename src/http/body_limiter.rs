//! Limits the memory that the bodies of all requests in flight take together.
//!
//! A request takes its room before its body is read and gives it back when its answer is over. One that does not say how
//! long its body is takes as much as one may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{Request, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;

use super::Settings;
use super::error::ApiError;

/// Room is counted in pieces of so many bytes.
const PIECE: usize = 1 << 10;

/// Room that is taken.
pub(super) type SharedBodyPermit = Arc<BodyPermit>;

/// What is left of the room. Clones share what is taken, and so do rooms of other sizes made of this one.
#[derive(Debug, Clone)]
pub struct BodyLimiter {
    used: Arc<AtomicUsize>,
    pieces: usize,
    body_max: usize,
}

/// Gives room back when it is dropped.
#[derive(Debug)]
pub(super) struct BodyPermit {
    of: Arc<AtomicUsize>,
    pieces: usize,
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.of.fetch_sub(self.pieces, Ordering::AcqRel);
    }
}

impl BodyLimiter {
    /// An empty room.
    pub fn new(settings: &Settings) -> BodyLimiter {
        BodyLimiter { used: Arc::default(), pieces: pieces(settings.bodies_max), body_max: settings.body_max }
    }

    /// The same room with other bounds. What is taken stays so, also where it is more than they allow.
    #[must_use]
    pub fn resized(&self, settings: &Settings) -> BodyLimiter {
        BodyLimiter { used: self.used.clone(), ..BodyLimiter::new(settings) }
    }

    /// Room for what a request brings along beside its body, held until it is dropped.
    ///
    /// # Errors
    /// 503 where there is none.
    pub(super) fn acquire(&self, bytes: usize) -> Result<SharedBodyPermit, ApiError> {
        self.try_acquire(bytes).map(Arc::new).ok_or_else(no_capacity)
    }

    fn try_acquire(&self, bytes: usize) -> Option<BodyPermit> {
        let wanted = pieces(bytes);
        // A room that was made smaller may be more than full; what needs none of it gets in.
        let fits = |taken: usize| taken.checked_add(wanted).filter(|all| wanted == 0 || *all <= self.pieces);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).ok()?;
        Some(BodyPermit { of: self.used.clone(), pieces: wanted })
    }

    /// The bytes that a request may bring. One that says it brings too many is refused unread, elsewhere.
    fn declared_bytes(&self, request: &Request<Body>) -> usize {
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
pub(super) async fn limit_bodies(
    State(room): State<BodyLimiter>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let Some(taken) = room.try_acquire(room.declared_bytes(&request)) else {
        return no_capacity().into_response();
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

fn no_capacity() -> ApiError {
    let message = "the requests in flight leave no room for what this one brings; try again shortly";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(1))
}

fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE)
}
