//! How many bytes of an answer a connection holds that were not written: a caller who takes nothing leaves the rest of the answer where
//! its own bounds are. Hyper by itself would take as many bytes as a head may have before it writes any.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use futures_util::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};

/// From so many bytes on, what was taken is written before more is taken.
const UNWRITTEN_MAX: usize = 8 << 10;

/// The bytes of one connection that were taken from answers and not written. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct UnwrittenBytes(Arc<Unwritten>);

#[derive(Debug, Default)]
struct Unwritten {
    bytes: AtomicUsize,
    written: AtomicWaker,
}

impl UnwrittenBytes {
    /// An answer's body, of which no more is taken than is written.
    pub(super) fn bound(&self, body: Body) -> BoundedBody {
        BoundedBody { body, unwritten: self.clone() }
    }

    /// So many more were taken.
    fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All were written.
    pub(super) fn clear(&self) {
        if self.0.bytes.swap(0, Ordering::AcqRel) >= UNWRITTEN_MAX {
            self.0.written.wake();
        }
    }

    /// Until more may be taken.
    fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.0.bytes.load(Ordering::Acquire) < UNWRITTEN_MAX {
            return Poll::Ready(());
        }
        self.0.written.register(cx.waker());
        // They may have been written meanwhile.
        if self.0.bytes.load(Ordering::Acquire) < UNWRITTEN_MAX { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A body that is taken only as far as its connection writes.
pub(super) struct BoundedBody {
    body: Body,
    unwritten: UnwrittenBytes,
}

impl HttpBody for BoundedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let BoundedBody { body, unwritten } = self.get_mut();
        ready!(unwritten.poll_room(cx));
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            unwritten.add(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Waker;

    use futures_util::stream::repeat;

    use super::*;

    #[test]
    fn of_an_answer_without_end_more_is_taken_once_what_was_taken_is_written() {
        let unwritten = UnwrittenBytes::default();
        let endless = repeat(Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1 << 10])));
        let mut body = unwritten.bound(Body::from_stream(endless));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            let taken = (0..100).take_while(|_| Pin::new(&mut body).poll_frame(&mut cx).is_ready()).count();
            assert_eq!(taken << 10, UNWRITTEN_MAX);
            unwritten.clear();
        }
    }
}
