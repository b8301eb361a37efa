//! The scripted upstream: it looks at as little of a request as it can, and every answer is ready before it starts.
//!
//! Words of an answer end in `#`, words of a thought in `~`: who receives them can count them in whatever
//! a gateway makes of the events.

mod answer;
mod reply;
mod words;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::LoadError;
use crate::scenario::UpstreamScript;

use answer::Answers;
use reply::{Pauses, Reply};

/// A body of a request that is larger is not read.
const BODY_MAX: usize = 64 << 20;

/// What all connections share.
struct Upstream {
    script: UpstreamScript,
    answers: Answers,
    places: Option<Arc<Semaphore>>,
    waiting: AtomicU64,
    streams: AtomicU64,
}

/// Answers requests until the process is stopped.
pub async fn serve(script: UpstreamScript, address: SocketAddr) -> Result<(), LoadError> {
    let listener = TcpListener::bind(address).await?;
    let upstream = Rc::new(Upstream {
        answers: Answers::new(&script),
        places: script.capacity.map(|places| Arc::new(Semaphore::new(places))),
        waiting: AtomicU64::new(0),
        streams: AtomicU64::new(0),
        script,
    });
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn_local(connection(upstream.clone(), stream));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(upstream: Rc<Upstream>, stream: TcpStream) {
    // Without it an event waits for the acknowledgement of the one before. A connection that is gone says so when it is read.
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request| {
        let upstream = upstream.clone();
        async move { Ok::<_, Infallible>(upstream.answer(request).await) }
    });
    // What goes wrong here is the caller's leaving.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

impl Upstream {
    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        if request.method() == Method::GET {
            return json(StatusCode::OK, answer::MODELS);
        }
        let speaks_messages = request.uri().path().ends_with("/messages");
        let Some(body) = read(request.into_body()).await else {
            return json(StatusCode::BAD_REQUEST, answer::REFUSAL);
        };
        let Ok(place) = self.place().await else {
            return json(StatusCode::TOO_MANY_REQUESTS, answer::REFUSAL);
        };
        if self.script.first_after_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.script.first_after_ms)).await;
        }
        let wanted = words::Wanted::of(&body, speaks_messages);
        if wanted.stream {
            let events = self.answers.events(&wanted);
            stream(Reply::events(events, place, self.pauses()))
        } else {
            let wait = self.script.per_second.map(|rate| self.whole_answer_takes(rate));
            if let Some(wait) = wait {
                tokio::time::sleep(wait).await;
            }
            drop(place);
            json(StatusCode::OK, self.answers.whole(&wanted))
        }
    }

    /// A place for an answer; an error where too many wait for one already.
    async fn place(&self) -> Result<Option<OwnedSemaphorePermit>, ()> {
        let Some(places) = &self.places else { return Ok(None) };
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Ok(Some(place));
        }
        let waiting = Waiting::begin(&self.waiting);
        if waiting.before >= self.script.queue_max as u64 {
            return Err(());
        }
        places.clone().acquire_owned().await.map(Some).map_err(|_| ())
    }

    fn pauses(&self) -> Pauses {
        let at = self.streams.fetch_add(1, Ordering::Relaxed);
        let stall = self.script.stall.filter(|stall| at % stall.every.max(1) == stall.every.max(1) - 1);
        Pauses {
            between: self.script.per_second.map(|rate| Duration::from_secs_f64(1.0 / rate)),
            stall: stall.map(|stall| (stall.after_events, Duration::from_millis(stall.milliseconds))),
        }
    }

    fn whole_answer_takes(&self, rate: f64) -> Duration {
        let events = u32::try_from(self.script.events + self.script.thoughts).unwrap_or(u32::MAX);
        Duration::from_secs_f64(f64::from(events) / rate)
    }
}

/// One more that waits, until it is dropped.
struct Waiting<'a> {
    count: &'a AtomicU64,
    before: u64,
}

impl Waiting<'_> {
    fn begin(count: &AtomicU64) -> Waiting<'_> {
        Waiting { before: count.fetch_add(1, Ordering::Relaxed), count }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Reply> {
    reply(status, HeaderValue::from_static("application/json"), Reply::whole(body.into()))
}

fn stream(body: Reply) -> Response<Reply> {
    reply(StatusCode::OK, HeaderValue::from_static("text/event-stream"), body)
}

fn reply(status: StatusCode, kind: HeaderValue, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The whole body; nothing where it breaks off or is too large.
async fn read(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = reply::next_frame(&mut body).await {
        if let Some(data) = frame.ok()?.data_ref() {
            bytes.extend_from_slice(data);
        }
        if bytes.len() > BODY_MAX {
            return None;
        }
    }
    Some(bytes)
}
