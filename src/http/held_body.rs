//! An answer's body that holds something until it was sent, or nobody takes it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

struct HeldBody<H> {
    body: Body,
    _held: H,
}

/// The body, holding this until its end.
pub(super) fn hold<H: Send + Unpin + 'static>(body: Body, held: H) -> Body {
    Body::new(HeldBody { body, _held: held })
}

impl<H: Unpin> HttpBody for HeldBody<H> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
