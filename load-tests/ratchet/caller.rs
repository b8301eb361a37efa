//! A caller that asks one thing after the other on one connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

pub(crate) struct Caller {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Caller {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Caller> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Caller { stream, read: Vec::new() })
    }

    /// Posts a chat completion; its answer, head and all.
    pub(crate) fn ask(&mut self, body: &str) -> io::Result<String> {
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        write!(self.stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        self.read.clear();
        let mut piece = [0; 16 << 10];
        while !is_whole(&self.read) {
            let length = self.stream.read(&mut piece)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.read.extend_from_slice(&piece[..length]);
        }
        Ok(String::from_utf8_lossy(&self.read).into_owned())
    }
}

/// True if an answer ends here: behind its last chunk, or where its length says.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => body.ends_with("0\r\n\r\n"),
    }
}
