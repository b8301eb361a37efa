//! A caller's stream, with TLS or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::guarded_stream::GuardedStream;

/// What a connection's bytes come and go by.
#[derive(Debug)]
pub(super) enum CallerStream {
    Plain(GuardedStream),
    Secure(Box<TlsStream<GuardedStream>>),
}

impl AsyncRead for CallerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            CallerStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            CallerStream::Secure(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for CallerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            CallerStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            CallerStream::Secure(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            CallerStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            CallerStream::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            CallerStream::Plain(stream) => stream.is_write_vectored(),
            CallerStream::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            CallerStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            CallerStream::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            CallerStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            CallerStream::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
