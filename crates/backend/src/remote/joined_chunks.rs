//! A connection to an upstream whose answers' chunks are joined where they came together.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use super::chunk_joiner::ChunkJoiner;

/// What is read at once.
const READ_SIZE: usize = 16 << 10;

thread_local! {
    /// What one read brought, until it is joined: nothing stays in it.
    static CAME: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

/// The connection.
#[derive(Debug)]
pub(super) struct JoinedChunks<S> {
    inner: S,
    joiner: ChunkJoiner,
}

impl<S: Connection> JoinedChunks<S> {
    /// One that has just been made. HTTP/2 has no chunks.
    pub(super) fn new(inner: S) -> JoinedChunks<S> {
        let joiner =
            if inner.connected().is_negotiated_h2() { ChunkJoiner::idle() } else { ChunkJoiner::new() };
        JoinedChunks { inner, joiner }
    }
}

impl<S: Read + Unpin> Read for JoinedChunks<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let JoinedChunks { inner, joiner } = self.get_mut();
        if joiner.is_idle() {
            return Pin::new(inner).poll_read(context, into);
        }
        CAME.with_borrow_mut(|came| {
            let room = into.remaining().min(came.len());
            let mut came = ReadBuf::new(&mut came[..room]);
            ready!(Pin::new(inner).poll_read(context, came.unfilled()))?;
            // No more comes out than went in, so there is room.
            joiner.join(came.filled(), |bytes| into.put_slice(bytes));
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: Write + Unpin> Write for JoinedChunks<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, bytes)
    }
}

impl<S: Connection> Connection for JoinedChunks<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}
