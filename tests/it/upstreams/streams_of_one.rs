//! Upstreams that speak HTTP/2, found out by ALPN: many streams share one connection, and each fails by itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Response, header};
use futures_util::future::join_all;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::harness::faultup::Identity;
use crate::harness::faultup::rig::question;
use crate::harness::faultup::script::{event, good, says};
use crate::harness::patience::QuietInstant;
use crate::harness::{Folder, Process};
use stint_types::tasks::Tasks;

use super::{Expected, TIMED_OUT, shape};

/// What becomes of one stream.
#[derive(Debug, Clone)]
enum Says {
    /// A whole answer, its second half after a while.
    Answers(Duration),
    /// A whole answer, after so many half seconds with a comment each.
    Drips(u32),
    /// Nothing has looked at it.
    Refuses,
    /// So many bytes, and then nothing, not even the end of the stream.
    Hangs(&'static str, String),
    /// The first half, then it says that it takes no more streams on this connection, then the rest.
    Goodbye,
}

/// An upstream that speaks HTTP/2 over TLS alone.
struct Upstream {
    address: String,
    connections: Arc<AtomicUsize>,
    /// The connection that each question came by.
    log: Arc<Mutex<Vec<usize>>>,
    _tasks: Tasks,
}

impl Upstream {
    async fn start(identity: &Identity, script: impl Fn(usize) -> Says + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let (tasks, acceptor, script) = (Tasks::default(), identity.acceptor_of_h2(), Arc::new(script));
        let (connections, log) = (Arc::new(AtomicUsize::new(0)), Arc::<Mutex<Vec<usize>>>::default());
        let (server, count, seen) = (tasks.clone(), connections.clone(), log.clone());
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, script, seen) = (acceptor.clone(), script.clone(), seen.clone());
                let theirs = server.clone();
                server.spawn(async move {
                    let Ok(socket) = acceptor.accept(socket).await else { return };
                    drop(serve(socket, number, &script, &seen, &theirs).await);
                });
            }
        });
        Upstream { address, connections, log, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn log(&self) -> Vec<usize> {
        self.log.lock().unwrap().clone()
    }
}

async fn serve(
    socket: tokio_rustls::server::TlsStream<TcpStream>,
    number: usize,
    script: &Arc<impl Fn(usize) -> Says + Send + Sync + 'static>,
    log: &Arc<Mutex<Vec<usize>>>,
    tasks: &Tasks,
) -> Result<(), h2::Error> {
    let mut connection = h2::server::Builder::new().max_concurrent_streams(200).handshake(socket).await?;
    let goodbye = Arc::new(Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = goodbye.notified() => {
                connection.graceful_shutdown();
                continue;
            }
        };
        let Some(accepted) = accepted else { return Ok(()) };
        let (asked, respond) = accepted?;
        let (goodbye, script, log) = (goodbye.clone(), script.clone(), log.clone());
        tasks.spawn(async move {
            // A client that is told goodbye between the head and the body takes the stream back, and asks elsewhere.
            if read_whole(asked.into_body()).await.is_err() {
                return;
            }
            let says = {
                let mut log = log.lock().unwrap();
                log.push(number);
                script(log.len() - 1)
            };
            drop(answer(respond, says, &goodbye).await);
        });
    }
}

/// Reads a question to its end.
async fn read_whole(mut body: RecvStream) -> Result<(), h2::Error> {
    while let Some(part) = body.data().await {
        let length = part?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(())
}

async fn answer(mut respond: SendResponse<Bytes>, says: Says, goodbye: &Notify) -> Result<(), h2::Error> {
    let text = good(&["4", "2"], 7, 2);
    let (first, rest) = text.split_at(text.len() / 2);
    match says {
        Says::Refuses => respond.send_reset(Reason::REFUSED_STREAM),
        Says::Answers(pause) => {
            let mut stream = begin(&mut respond, "text/event-stream")?;
            stream.send_data(first.to_owned().into(), false)?;
            tokio::time::sleep(pause).await;
            stream.send_data(rest.to_owned().into(), true)?;
        }
        Says::Drips(halves) => {
            let mut stream = begin(&mut respond, "text/event-stream")?;
            for _ in 0..halves {
                stream.send_data(": still here\n\n".into(), false)?;
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            stream.send_data(text.into(), true)?;
        }
        Says::Goodbye => {
            let mut stream = begin(&mut respond, "text/event-stream")?;
            stream.send_data(first.to_owned().into(), false)?;
            goodbye.notify_one();
            tokio::time::sleep(Duration::from_millis(300)).await;
            stream.send_data(rest.to_owned().into(), true)?;
        }
        Says::Hangs(kind, bytes) => {
            let mut stream = begin(&mut respond, kind)?;
            stream.send_data(bytes.into(), false)?;
            futures_util::future::poll_fn(|cx| stream.poll_reset(cx)).await?;
        }
    }
    Ok(())
}

fn begin(respond: &mut SendResponse<Bytes>, kind: &str) -> Result<SendStream<Bytes>, h2::Error> {
    respond.send_response(Response::builder().header(header::CONTENT_TYPE, kind).body(()).unwrap(), false)
}

/// The real binary in front of such an upstream, which it trusts and waits for.
async fn before(script: impl Fn(usize) -> Says + Send + Sync + 'static) -> (Upstream, Folder, Process) {
    waiting("1m", script).await
}

/// The same, which waits for so long between two pieces.
async fn waiting(
    idle: &str,
    script: impl Fn(usize) -> Says + Send + Sync + 'static,
) -> (Upstream, Folder, Process) {
    let identity = Identity::of("localhost");
    let upstream = Upstream::start(&identity, script).await;
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = '{}/v1'\nidle_timeout = '{idle}'\n\
         [[backend.model]]\nname = 'm'\nserves = ['chat', 'embeddings']\nprice_input = '1'\nprice_output = '1'\n",
        upstream.address
    ));
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, &identity.pem).unwrap();
    let mut command = folder.stint("serve");
    command.env("SSL_CERT_FILE", &trusted);
    let process = folder.serve_by(command);
    (upstream, folder, process)
}

/// UP-21: streams outlive the time after which an idle connection is let go of.
#[tokio::test]
async fn a_hundred_streams_on_one_connection_end_whatever_becomes_of_the_pool() {
    let (upstream, _folder, process) = before(|number| match number {
        0 => Says::Answers(Duration::ZERO),
        // Longer than the pool keeps a connection that nobody takes out of it.
        _ => Says::Drips(11),
    })
    .await;
    assert!(process.ask("", &question(true)).await.chunks().done);
    let asked = question(true);
    for answer in join_all((0..100).map(|_| process.ask("", &asked))).await {
        let chunks = answer.chunks();
        assert!(chunks.done, "{}", answer.text);
        assert_eq!(chunks.joined(0, "content"), "42");
    }
    assert_eq!((upstream.connections(), upstream.log().len()), (1, 101));
}

/// UP-23: GOAWAY in the middle of streams: those that run end well, the next goes by another connection.
#[tokio::test]
async fn streams_that_run_when_the_upstream_says_goodbye_end_well() {
    let (upstream, _folder, process) = before(|number| match number {
        7 => Says::Goodbye,
        _ => Says::Answers(Duration::from_millis(200)),
    })
    .await;
    process.ask("", &question(true)).await;
    let asked = question(true);
    for answer in join_all((0..20).map(|_| process.ask("", &asked))).await {
        assert!(answer.chunks().done, "{}", answer.text);
    }
    assert!(process.ask("", &question(true)).await.chunks().done);
    // Those that had not set out yet may each open one of their own.
    assert!(upstream.connections() >= 2);
    assert_eq!(upstream.log().len(), 22, "nothing was asked twice");
}

/// UP-23: `REFUSED_STREAM`: nothing has looked at it, so it is tried again and costs nothing.
#[tokio::test]
async fn a_refused_stream_is_tried_again_and_free() {
    let (upstream, _folder, process) = before(|number| match number {
        0 => Says::Refuses,
        _ => Says::Answers(Duration::ZERO),
    })
    .await;
    let answer = process.ask("", &question(false)).await.good();
    assert_eq!(answer["choices"][0]["message"]["content"], "42");
    assert_eq!(answer["budget"]["other"], json!({ "attempts": 1, "tokens": 0 }), "{answer}");
    assert_eq!(answer["budget"]["cost_usd"], "0.000009", "the second attempt alone: {answer}");
    assert_eq!(upstream.log().len(), 2);
}

/// UP-23: all bytes came and the stream does not end: what says itself that it is whole is, all else ends by the idle
/// time-out.
#[tokio::test]
async fn a_stream_that_does_not_end_is_waited_for_as_long_as_one_that_is_silent() {
    let whole = |_| Says::Hangs("text/event-stream", good(&["4", "2"], 7, 2));
    let (_upstream, _folder, process) = before(whole).await;
    let begun = QuietInstant::now();
    assert!(process.ask("", &question(true)).await.chunks().done);
    assert!(begun.elapsed() < Duration::from_secs(20), "not for a minute: {:?}", begun.elapsed());
    let (_upstream, _folder, process) = waiting("800ms", |number| match number {
        0 => Says::Hangs("text/event-stream", event(&says("4"))),
        _ => {
            Says::Hangs("application/json", json!({ "data": [{ "embedding": [1], "index": 0 }] }).to_string())
        }
    })
    .await;
    let begun = QuietInstant::now();
    let broken = process.ask("", &question(true)).await;
    shape(&broken, Expected { begun: true, ..TIMED_OUT }, true);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked = client.post(format!("{}/v1/embeddings", process.base));
    let asked = asked.header("content-type", "application/json");
    let answer = asked.body(json!({ "model": "m", "input": "a" }).to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 504, "{}", answer.text().await.unwrap());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
