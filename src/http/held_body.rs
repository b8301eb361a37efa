//! An answer's body that holds something until it was sent, or nobody takes it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

struct HeldBody<B, H> {
    body: B,
    _held: H,
}

/// The body, holding this until its end.
pub(super) fn hold<B, H>(body: B, held: H) -> Body
where
    B: HttpBody<Data = Bytes, Error = Error> + Send + Unpin + 'static,
    H: Send + Unpin + 'static,
{
    Body::new(HeldBody { body, _held: held })
}

impl<B, H> HttpBody for HeldBody<B, H>
where
    B: HttpBody<Data = Bytes, Error = Error> + Unpin,
    H: Unpin,
{
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
