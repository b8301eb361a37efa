//! A caller's TCP stream that moves its bytes in turns, with a deadline for writes: one that makes no progress is closed. TLS,
//! where it is spoken, is above it, so that its own buffers do not pass for progress.
//!
//! It may be looked at before it is read: how it begins says which version of HTTP it speaks.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::io_turn::IoTurn;

/// A TCP stream whose writes must make progress within a time.
#[derive(Debug)]
pub(super) struct GuardedStream {
    stream: TcpStream,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// What was looked at and is read next.
    seen: Vec<u8>,
    read: IoTurn,
    written: IoTurn,
}

impl GuardedStream {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> GuardedStream {
        GuardedStream {
            stream,
            patience,
            stalled: None,
            seen: Vec::new(),
            read: IoTurn::default(),
            written: IoTurn::default(),
        }
    }

    /// Whether its first bytes are these. Waits for as many of them as it takes to know.
    ///
    /// # Errors
    /// When it breaks.
    pub(super) async fn begins_with(&mut self, expected: &[u8]) -> io::Result<bool> {
        while self.seen.len() < expected.len() {
            let mut scratch = [0; 64];
            let room = (expected.len() - self.seen.len()).min(scratch.len());
            let read = self.stream.read(&mut scratch[..room]).await?;
            self.seen.extend_from_slice(&scratch[..read]);
            if read == 0 || !expected.starts_with(&self.seen) {
                return Ok(false);
            }
        }
        Ok(self.seen == expected)
    }

    fn read_in_turn(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.read.poll_begin(cx));
        let before = buf.filled().len();
        let progress = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.read.add(buf.filled().len() - before);
        if progress.is_pending() {
            self.read.end();
        }
        progress
    }

    /// What a write says, which counts in this turn's bytes.
    fn write_in_turn(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.written.poll_begin(cx));
        let progress = write(Pin::new(&mut self.stream), cx);
        match progress {
            Poll::Ready(Ok(bytes)) => self.written.add(bytes),
            Poll::Ready(Err(_)) | Poll::Pending => self.written.end(),
        }
        self.guard(cx, progress)
    }

    /// Passes on what a write says, but breaks one that stays pending for too long.
    fn guard<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        debug_assert!(stalled.deadline() <= Instant::now() + patience, "the timer starts with the stall");
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the caller takes no bytes")))
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.seen.is_empty() {
            return self.read_in_turn(cx, buf);
        }
        let passed = self.seen.len().min(buf.remaining());
        buf.put_slice(&self.seen[..passed]);
        self.seen.drain(..passed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write_in_turn(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_in_turn(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A TCP stream has nothing to flush, so this says nothing of progress.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.guard(cx, progress)
    }
}
