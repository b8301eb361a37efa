//! A scripted upstream for tests: it answers byte for byte from its script, on a socket of its own, and records its
//! requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use stint_types::tasks::Tasks;

/// One step of an answer.
#[derive(Debug, Clone)]
pub(super) enum AnswerStep {
    Send(Vec<u8>),
    Sleep(Duration),
    /// Says nothing more until the client leaves.
    Hang,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct TestUpstreamRequest {
    pub(super) head: String,
    pub(super) body: Value,
}

/// The answers still to be given, by path; the first that fits is taken.
type CannedAnswers = Vec<(&'static str, Vec<AnswerStep>)>;

#[derive(Debug, Clone, Default)]
pub(super) struct TestUpstream {
    pub(super) address: String,
    asked: Arc<Mutex<Vec<TestUpstreamRequest>>>,
    connections: Arc<AtomicUsize>,
    left: Arc<Notify>,
}

impl TestUpstream {
    pub(super) async fn start(answers: CannedAnswers) -> TestUpstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let upstream = TestUpstream { address, ..TestUpstream::default() };
        let (server, answers) = (upstream.clone(), Arc::new(Mutex::new(answers)));
        let tasks = Tasks::default();
        tasks.clone().spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (server, answers) = (server.clone(), answers.clone());
                tasks.spawn(async move { server.serve(socket, &answers).await });
            }
        });
        upstream
    }

    pub(super) fn asked(&self) -> Vec<TestUpstreamRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Resolves when a client has left a hanging answer.
    pub(super) async fn left(&self) {
        self.left.notified().await;
    }

    async fn serve(&self, mut socket: TcpStream, answers: &Mutex<CannedAnswers>) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        while let Some(asked) = read(&mut socket).await {
            if !self.say(&mut socket, asked, answers).await {
                return;
            }
        }
    }

    /// Answers one request; true if the connection may be used again.
    async fn say(
        &self,
        socket: &mut TcpStream,
        asked: TestUpstreamRequest,
        answers: &Mutex<CannedAnswers>,
    ) -> bool {
        let path = asked.head.split(' ').nth(1).unwrap().to_owned();
        self.asked.lock().unwrap().push(asked);
        let steps = {
            let mut answers = answers.lock().unwrap();
            let place = answers.iter().position(|(of, _)| *of == path);
            answers.remove(place.unwrap_or_else(|| panic!("nothing to say to {path}"))).1
        };
        let again = matches!(steps.first(), Some(AnswerStep::Send(head)) if head.windows(7).any(|it| it == b"chunked"));
        for step in steps {
            match step {
                AnswerStep::Send(bytes) => drop(socket.write_all(&bytes).await),
                AnswerStep::Sleep(time) => tokio::time::sleep(time).await,
                AnswerStep::Hang => {
                    while socket.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                    self.left.notify_one();
                }
            }
        }
        again
    }
}

/// A whole answer with a body.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> Vec<AnswerStep> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    vec![AnswerStep::Send(format!("{head}{body}").into_bytes())]
}

/// A JSON answer.
pub(super) fn json(body: &Value) -> Vec<AnswerStep> {
    answer("200 OK", "content-type: application/json\r\n", &body.to_string())
}

/// The beginning of an event stream, which the end of the connection ends.
pub(super) fn stream(text: &str) -> Vec<AnswerStep> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    vec![AnswerStep::Send(format!("{head}{text}").into_bytes())]
}

/// An event stream in one chunk, whose end comes a little later.
pub(super) fn chunked(text: &str) -> Vec<AnswerStep> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{head}{:x}\r\n{text}\r\n", text.len());
    let lag = AnswerStep::Sleep(Duration::from_millis(2));
    vec![AnswerStep::Send(chunk.into_bytes()), lag, AnswerStep::Send(b"0\r\n\r\n".to_vec())]
}

/// Events one after another.
pub(super) fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

async fn read(socket: &mut TcpStream) -> Option<TestUpstreamRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let byte = socket.read_u8().await.ok()?;
        bytes.push(byte);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length:").map(|length| length.trim().parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).await.ok()?;
    Some(TestUpstreamRequest { head, body: serde_json::from_slice(&body).unwrap_or_default() })
}
