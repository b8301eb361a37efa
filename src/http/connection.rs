//! A caller's connection, with TLS or without. What is read is well framed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::framing::HeadLimits;
use super::guarded_stream::GuardedStream;
use super::request_reader::{RefusedHead, RequestReader};
use super::unwritten::UnwrittenBytes;

/// What its bytes come and go by.
#[derive(Debug)]
pub(super) enum CallerStream {
    Plain(GuardedStream),
    Secure(Box<TlsStream<GuardedStream>>),
}

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
        match stream {
            CallerStream::Plain(stream) => reader.poll_read(Pin::new(stream), cx, buf),
            CallerStream::Secure(stream) => reader.poll_read(Pin::new(stream), cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            CallerStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            CallerStream::Secure(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            CallerStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            CallerStream::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            CallerStream::Plain(stream) => stream.is_write_vectored(),
            CallerStream::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Connection { stream, unwritten, .. } = self.get_mut();
        let flushed = match stream {
            CallerStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            CallerStream::Secure(stream) => Pin::new(stream).poll_flush(cx),
        };
        let flushed = ready!(flushed);
        // Hyper had nothing left to write when it called this, and TLS has nothing left now.
        unwritten.clear();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            CallerStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            CallerStream::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
