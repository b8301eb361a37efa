//! A caller who speaks HTTP/2 without TLS, and knows what it does with each frame.

use std::sync::Mutex;

use axum::body::Bytes;
use axum::http::{Request, Response};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::harness::World;

/// How it begins.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One connection.
pub(super) struct Caller {
    requests: SendRequest<Bytes>,
    ended: Mutex<Option<oneshot::Receiver<Option<Reason>>>>,
}

/// A request that was sent. Dropping it takes it back.
pub(super) struct Sent {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Sent {
    pub(super) async fn answer(self) -> Response<RecvStream> {
        self.answer.await.expect("an answer")
    }

    /// Takes it back.
    pub(super) fn reset(&mut self) {
        self.body.send_reset(Reason::CANCEL);
    }
}

pub(super) fn question(stream: bool) -> Value {
    json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "What is 1+2?" }],
            "budget": { "thinking_tokens": 50, "solution_tokens": 150000 } })
}

/// All of an answer.
pub(super) async fn text(answer: Response<RecvStream>) -> Result<String, h2::Error> {
    let mut body = answer.into_body();
    let mut all = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        all.extend_from_slice(&data);
    }
    Ok(String::from_utf8(all).unwrap())
}

impl Caller {
    /// Connects. Of each answer it takes so many bytes that nobody has read.
    pub(super) async fn connect(world: &World, window: u32) -> Caller {
        let stream = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
        Caller::over(stream, window).await
    }

    async fn over(stream: TcpStream, window: u32) -> Caller {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1 << 20).enable_push(false);
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        let (tell, ended) = oneshot::channel();
        tokio::spawn(async move {
            let reason = match connection.await {
                Ok(()) => Some(Reason::NO_ERROR),
                Err(error) => error.reason(),
            };
            let _ = tell.send(reason);
        });
        Caller { requests, ended: Mutex::new(Some(ended)) }
    }

    fn post() -> axum::http::request::Builder {
        let request = Request::post("http://a.example/v1/chat/completions");
        request.header("authorization", "Bearer sk-key").header("content-type", "application/json")
    }

    async fn send(&self, request: Request<()>, is_over: bool) -> Sent {
        let mut requests = self.requests.clone().ready().await.unwrap();
        let (answer, body) = requests.send_request(request, is_over).unwrap();
        Sent { answer, body }
    }

    /// Asks, and waits for nothing.
    pub(super) async fn begin(&self, stream: bool) -> Sent {
        let mut sent = self.send(Caller::post().body(()).unwrap(), false).await;
        sent.body.send_data(question(stream).to_string().into(), true).unwrap();
        sent
    }

    /// The same with a body that does not end.
    pub(super) async fn begin_with_half_a_body(&self) -> Sent {
        let mut sent = self.send(Caller::post().body(()).unwrap(), false).await;
        sent.body.send_data(Bytes::from_static(b"{\"model\":"), false).unwrap();
        sent
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn ask(&self, stream: bool) -> Response<RecvStream> {
        self.begin(stream).await.answer().await
    }

    /// Asks for a path with its key and these header lines.
    pub(super) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<RecvStream> {
        let request =
            Request::get(format!("http://a.example{path}")).header("authorization", "Bearer sk-key");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.send(request.body(()).unwrap(), true).await.answer().await
    }

    /// Until the other side ends the connection, and why.
    pub(super) async fn ended(&self) -> Option<Reason> {
        let ended = self.ended.lock().unwrap().take().expect("it is waited for once");
        ended.await.unwrap()
    }
}
