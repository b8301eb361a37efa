//! Reads a connection's requests and passes on only what is well framed: heads when they are whole, bodies as they come. After a
//! head that is not, hyper is given a request of our own to answer, in the order of the requests before it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use super::framing::{FramingError, HeadLimits, RequestFraming};

/// The method of the request that stands for one that was refused.
const STAND_IN_METHOD: &str = "REFUSED";
/// The request that stands for one that was refused. The connection ends with it.
const STAND_IN: &[u8] = b"REFUSED / HTTP/1.1\r\nhost: stint\r\nconnection: close\r\n\r\n";
/// The same, for one whose caller reads Anthropic's errors.
const STAND_IN_FOR_MESSAGES: &[u8] =
    b"REFUSED /v1/messages HTTP/1.1\r\nhost: stint\r\nconnection: close\r\n\r\n";
/// How such a request begins.
const MESSAGES: &[u8] = b"POST /v1/messages";

/// Why a connection's last request is not read. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedHead(Arc<OnceLock<FramingError>>);

impl RefusedHead {
    /// Why the request with this method is refused, if it stands for one that is.
    pub(super) fn reason(&self, method: &hyper::Method) -> Option<FramingError> {
        self.0.get().copied().filter(|_| method.as_str() == STAND_IN_METHOD)
    }
}

/// The reading half of a connection.
#[derive(Debug)]
pub(super) struct RequestReader {
    framing: RequestFraming,
    /// A head whose end has not come.
    head: Vec<u8>,
    /// Bytes that came and are not passed on; as many at their beginning as `checked` says may be.
    pending: BytesMut,
    checked: usize,
    refused: RefusedHead,
}

impl RequestReader {
    pub(super) fn new(limits: HeadLimits) -> RequestReader {
        RequestReader {
            framing: RequestFraming::new(limits),
            head: Vec::new(),
            pending: BytesMut::new(),
            checked: 0,
            refused: RefusedHead::default(),
        }
    }

    /// Where it is said why the last request is not read.
    pub(super) fn refused(&self) -> RefusedHead {
        self.refused.clone()
    }

    /// True if more of a request is on its way that nobody will read.
    pub(super) fn is_mid_request(&self) -> bool {
        !self.framing.is_in_head() || !self.head.is_empty() || self.refused.0.get().is_some()
    }

    /// Reads what may be passed on.
    pub(super) fn poll_read(
        &mut self,
        mut stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.checked > 0 {
                let passed = self.checked.min(buf.remaining());
                buf.put_slice(&self.pending[..passed]);
                self.pending.advance(passed);
                self.checked -= passed;
                return Poll::Ready(Ok(()));
            }
            if self.refused.0.get().is_some() {
                return discard(stream, cx);
            }
            let before = buf.filled().len();
            if self.pending.is_empty() {
                ready!(stream.as_mut().poll_read(cx, buf))?;
                if buf.filled().len() == before {
                    return Poll::Ready(Ok(()));
                }
            } else {
                let taken = self.pending.len().min(buf.remaining());
                buf.put_slice(&self.pending[..taken]);
                self.pending.advance(taken);
            }
            let passed = self.check(&buf.filled()[before..])?;
            buf.set_filled(before + passed);
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Looks at bytes that came: how many of them may be passed on right away. The rest is kept.
    fn check(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.framing.is_in_head() {
            let taken = self.framing.advance_body(bytes).map_err(io::Error::other)?;
            self.keep(&bytes[taken..]);
            return Ok(taken);
        }
        match self.check_head(bytes) {
            Ok(passed) => Ok(passed),
            Err(error) => {
                // Nobody else sets it.
                let _ = self.refused.0.set(error);
                let head = std::mem::take(&mut self.head);
                let stand_in = stand_in(head.iter().chain(bytes).copied());
                self.pending = BytesMut::from(stand_in);
                self.checked = stand_in.len();
                Ok(0)
            }
        }
    }

    fn check_head(&mut self, bytes: &[u8]) -> Result<usize, FramingError> {
        let Some(end) = self.framing.scan_head(bytes)? else {
            self.head.extend_from_slice(bytes);
            return Ok(0);
        };
        let (last, rest) = bytes.split_at(end);
        if self.head.is_empty() {
            self.framing.begin_body(last)?;
            self.keep(rest);
            return Ok(end);
        }
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(last);
        if let Err(error) = self.framing.begin_body(&head) {
            self.head = head;
            return Err(error);
        }
        self.checked = head.len();
        self.keep(rest);
        self.keep(&head);
        Ok(0)
    }

    /// Puts bytes before those that wait.
    fn keep(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut kept = BytesMut::with_capacity(bytes.len() + self.pending.len());
        kept.extend_from_slice(bytes);
        kept.extend_from_slice(&self.pending);
        self.pending = kept;
    }
}

/// What stands for a request that begins so.
fn stand_in(mut head: impl Iterator<Item = u8>) -> &'static [u8] {
    let is_message = head.by_ref().take(MESSAGES.len()).eq(MESSAGES.iter().copied());
    let is_whole = matches!(head.next(), Some(b' ' | b'/' | b'?'));
    if is_message && is_whole { STAND_IN_FOR_MESSAGES } else { STAND_IN }
}

/// Reads what still comes after a refusal, so that the answer arrives: a connection that is closed with bytes unread takes it along.
fn discard(stream: Pin<&mut impl AsyncRead>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    let mut scratch = [0; 4096];
    let mut buf = ReadBuf::new(&mut scratch);
    if let Poll::Ready(Ok(())) = stream.poll_read(cx, &mut buf)
        && !buf.filled().is_empty()
    {
        cx.waker().wake_by_ref();
    }
    // Not an end: hyper would give up the answer.
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// A stream that comes in pieces.
    struct Pieces<'s>(std::slice::Chunks<'s, u8>);

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.0.next().into_iter().for_each(|piece| buf.put_slice(piece));
            Poll::Ready(Ok(()))
        }
    }

    const LIMITS: HeadLimits = HeadLimits { bytes: 1 << 10, lines: 8 };

    /// What is passed on of a stream that comes in pieces of so many bytes, into buffers of so many; and why its end is refused.
    async fn passed(stream: &str, piece: usize, room: usize) -> (String, Option<FramingError>) {
        let mut stream = Pieces(stream.as_bytes().chunks(piece.min(room)));
        let (mut reader, mut all) = (RequestReader::new(LIMITS), Vec::new());
        loop {
            let mut space = vec![0; room];
            let mut buf = ReadBuf::new(&mut space);
            let read = poll_fn(|cx| {
                match reader.poll_read(Pin::new(&mut stream), cx, &mut buf) {
                    // Nothing follows a refusal.
                    Poll::Pending if reader.refused.0.get().is_some() => Poll::Ready(Ok(())),
                    polled => polled,
                }
            });
            read.await.unwrap();
            if buf.filled().is_empty() {
                return (String::from_utf8(all).unwrap(), reader.refused.0.get().copied());
            }
            all.extend_from_slice(buf.filled());
        }
    }

    #[tokio::test]
    async fn well_framed_requests_pass_as_they_are_however_they_are_cut() {
        let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd\
                        POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        for (piece, room) in [(1, 100), (3, 2), (50, 7), (1000, 1000), (1000, 1)] {
            assert_eq!(passed(requests, piece, room).await, (requests.to_owned(), None), "{piece} {room}");
        }
    }

    #[tokio::test]
    async fn a_request_that_is_refused_is_stood_in_for_after_those_before_it() {
        let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let bad = "POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd";
        let expected = format!("{good}{}", String::from_utf8_lossy(STAND_IN));
        for (piece, room) in [(1, 100), (9, 5), (1000, 1000)] {
            let found = passed(&format!("{good}{bad}"), piece, room).await;
            assert_eq!(found, (expected.clone(), Some(FramingError::ContentLength)), "{piece} {room}");
        }
    }
}
