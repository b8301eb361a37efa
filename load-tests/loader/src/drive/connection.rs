//! A connection that is kept from one request to the next.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::response::Head;

const PIECE: usize = 64 << 10;
const HEAD_MAX: usize = 64 << 10;

/// A connection and what it has read last.
pub(super) struct Connection {
    stream: TcpStream,
    piece: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, piece: vec![0; PIECE] })
    }

    pub(super) async fn write(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// What arrived next; nothing where the other side has closed.
    pub(super) async fn read(&mut self) -> io::Result<&[u8]> {
        let length = self.stream.read(&mut self.piece).await?;
        Ok(&self.piece[..length])
    }

    /// The head of an answer, and what of its body came with it.
    pub(super) async fn head(&mut self) -> io::Result<(Head, Vec<u8>)> {
        let mut read = Vec::new();
        loop {
            let piece = self.read().await?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read.extend_from_slice(piece);
            if let Some(head) = Head::parse(&read) {
                read.drain(..head.bytes);
                return Ok((head, read));
            }
            if read.len() > HEAD_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}
