//! A caller's connection that speaks HTTP/1.1. What is read is well framed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::caller_stream::CallerStream;
use super::framing::HeadLimits;
use super::request_reader::{RefusedHead, RequestReader};
use super::unwritten::UnwrittenBytes;

/// A caller's stream that gives whole heads, and knows what of its answers was written.
#[derive(Debug)]
pub(super) struct Connection {
    stream: CallerStream,
    reader: RequestReader,
    unwritten: UnwrittenBytes,
}

impl Connection {
    pub(super) fn new(stream: CallerStream, limits: HeadLimits) -> Connection {
        let (reader, unwritten) = (RequestReader::new(limits), UnwrittenBytes::default());
        Connection { stream, reader, unwritten }
    }

    /// Where it is said why the last request is not read.
    pub(super) fn refused(&self) -> RefusedHead {
        self.reader.refused()
    }

    /// How much of its answers it holds.
    pub(super) fn unwritten(&self) -> UnwrittenBytes {
        self.unwritten.clone()
    }

    /// True if more of a request is on its way that nobody will read.
    pub(super) fn is_mid_request(&self) -> bool {
        self.reader.is_mid_request()
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Connection { stream, reader, .. } = self.get_mut();
        reader.poll_read(Pin::new(stream), cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Connection { stream, unwritten, .. } = self.get_mut();
        let flushed = ready!(Pin::new(stream).poll_flush(cx));
        // Hyper had nothing left to write when it called this, and TLS has nothing left now.
        unwritten.clear();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
