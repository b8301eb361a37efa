//! A deployment of a model behind OpenAI's API that does as it is told, byte for byte, and keeps a log of what it was
//! asked and what it would bill.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use stint_backend::Backend;
use stint_backend::remote::openai::{self, OpenAiBackend};
use stint_backend::remote::{self, Connections};
use stint_types::tasks::Tasks;

/// What a deployment does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// So many tokens, the first after a while.
    Tokens(u64, Duration),
    /// So many tokens, and then the connection is gone.
    Breaks(u64),
    /// An error with this status, and these headers.
    Status(u16, &'static str),
    /// That our account there is empty.
    NoQuota,
    /// Nothing, until the other side has enough.
    Nothing,
    /// Nothing, and the connection is gone.
    HangsUp,
}

/// What became of a request, as its upstream knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    /// The conversation.
    pub(crate) messages: Value,
    /// Tokens written, where the answer came to its end.
    pub(crate) billed: Option<u64>,
}

type Script = dyn Fn(usize, &Value) -> Says + Send + Sync;

/// A deployment in this process. It serves until the test ends.
#[derive(Clone)]
pub(crate) struct Deployment {
    pub(crate) base: String,
    log: Arc<Mutex<Vec<Served>>>,
    _tasks: Tasks,
}

impl Says {
    /// So many tokens at once.
    pub(crate) fn tokens(count: u64) -> Says {
        Says::Tokens(count, Duration::ZERO)
    }
}

impl Deployment {
    /// Says the same to everybody.
    pub(crate) async fn always(says: Says) -> Deployment {
        Deployment::each(move |_, _| says.clone()).await
    }

    /// Decides for each request, told how many came before.
    pub(crate) async fn each(script: impl Fn(usize, &Value) -> Says + Send + Sync + 'static) -> Deployment {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tasks, log) = (Tasks::default(), Arc::<Mutex<Vec<Served>>>::default());
        let script: Arc<Script> = Arc::new(script);
        let (server, seen) = (tasks.clone(), log.clone());
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (script, seen) = (script.clone(), seen.clone());
                server.spawn(async move { drop(serve(socket, &*script, &seen).await) });
            }
        });
        Deployment { base, log, _tasks: tasks }
    }

    /// Everything it was asked, in order.
    pub(crate) fn log(&self) -> Vec<Served> {
        self.log.lock().unwrap().clone()
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// What asks it for the model `m`, with deadlines that suit a test.
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        backend(&self.base)
    }
}

/// What asks an address for the model `m`.
pub(crate) fn backend(base: &str) -> Arc<dyn Backend> {
    let client = remote::Settings {
        base_url: base.to_owned(),
        connect: Duration::from_secs(2),
        first_byte: Duration::from_secs(1),
        keep_alive: false,
        ..remote::Settings::default()
    };
    Arc::new(
        OpenAiBackend::new(
            &Connections::default(),
            openai::Settings { client, model: "m".to_owned(), ..Default::default() },
        )
        .unwrap(),
    )
}

/// An address where nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

async fn serve(mut socket: TcpStream, script: &Script, log: &Mutex<Vec<Served>>) -> io::Result<()> {
    let request = read(&mut socket).await?;
    let turn = {
        let mut log = log.lock().unwrap();
        log.push(Served { messages: request["messages"].clone(), billed: None });
        log.len() - 1
    };
    match script(turn, &request) {
        Says::Tokens(count, first) => {
            tokio::time::sleep(first).await;
            match request.get("input") {
                Some(_) => say(&mut socket, 200, "", &vector()).await?,
                None => socket.write_all(answer(count).as_bytes()).await?,
            }
            log.lock().unwrap()[turn].billed = Some(count);
        }
        Says::Breaks(count) => {
            socket.write_all(beginning(count).as_bytes()).await?;
        }
        Says::Status(status, headers) => say(&mut socket, status, headers, &json!({})).await?,
        Says::NoQuota => {
            let body =
                json!({ "error": { "message": "You exceeded your quota", "code": "insufficient_quota" } });
            say(&mut socket, 429, "", &body).await?;
        }
        Says::Nothing => while socket.read(&mut [0; 64]).await? > 0 {},
        Says::HangsUp => return Ok(()),
    }
    socket.shutdown().await
}

/// A whole answer.
async fn say(socket: &mut TcpStream, status: u16, headers: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} so\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n{headers}\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await
}

/// One vector, of a text of five tokens.
fn vector() -> Value {
    json!({ "object": "list", "model": "m", "usage": { "prompt_tokens": 5, "total_tokens": 5 },
            "data": [{ "object": "embedding", "index": 0, "embedding": [0.5] }] })
}

/// A whole stream, which the end of the connection ends.
fn answer(count: u64) -> String {
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count });
    let last = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                       "choices": [], "usage": usage });
    beginning(count)
        + &format!("data: {}\n\ndata: {last}\n\ndata: [DONE]\n\n", chunk(&json!({}), Some("stop")))
}

/// The same without its end.
fn beginning(count: u64) -> String {
    let mut text =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned();
    for _ in 0..count {
        text += &format!("data: {}\n\n", chunk(&json!({ "content": "x" }), None));
    }
    text
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice] })
}

/// Reads a request to the end of its body.
async fn read(socket: &mut TcpStream) -> io::Result<Value> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(serde_json::from_slice(&bytes[end..]).unwrap_or_default())
}
