//! An OpenAI-compatible upstream that keeps a log of its own: the truth about what was sent and billed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint::metrics::Metrics;
use stint::tasks::Tasks;

/// What it does with a request; the caller says so in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers in so many tokens, one each millisecond, and says what it took.
    Tokens(u64),
    /// Refuses with 500.
    Fails,
    /// Breaks off after so many tokens.
    BreaksOff(u64),
}

/// An upstream in this process. It serves until the test ends.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) base: String,
    log: Arc<Mutex<BTreeMap<String, u32>>>,
    _tasks: Tasks,
}

impl Manner {
    /// The words for it in a message.
    pub(crate) fn words(self) -> String {
        match self {
            Manner::Tokens(count) => format!("tokens {count}"),
            Manner::Fails => "fails 0".to_owned(),
            Manner::BreaksOff(count) => format!("breaks {count}"),
        }
    }

    fn of(words: &str) -> Manner {
        let (word, count) = words.split_once(' ').unwrap();
        let count = count.parse().unwrap();
        match word {
            "tokens" => Manner::Tokens(count),
            "breaks" => Manner::BreaksOff(count),
            _ => Manner::Fails,
        }
    }
}

impl Upstream {
    pub(crate) fn start() -> Upstream {
        let (tasks, log) = (Tasks::default(), Arc::<Mutex<BTreeMap<String, u32>>>::default());
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let seen = log.clone();
        let answer = move |body: String| async move { answer(&body, &seen) };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().route("/v1/chat/completions", post(answer))));
        Upstream { base, log, _tasks: tasks }
    }

    /// How often it was asked, by the caller's `user`.
    pub(crate) fn attempts(&self) -> BTreeMap<String, u32> {
        self.log.lock().unwrap().clone()
    }
}

fn answer(body: &str, log: &Mutex<BTreeMap<String, u32>>) -> Response {
    let request: Value = serde_json::from_str(body).unwrap();
    let user = request["user"].as_str().unwrap_or_default().to_owned();
    *log.lock().unwrap().entry(user).or_default() += 1;
    let content = &request["messages"][0]["content"];
    let words = content.as_str().or(content[0]["text"].as_str()).unwrap();
    match Manner::of(words) {
        Manner::Fails => (StatusCode::INTERNAL_SERVER_ERROR, "{}").into_response(),
        Manner::Tokens(count) => events(count, true),
        Manner::BreaksOff(count) => events(count, false),
    }
}

/// So many tokens; then, if it comes to an end, the reason and the usage.
fn events(count: u64, ends: bool) -> Response {
    let delta = |delta: Value, finish: Option<&str>| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    let tokens = (0..count).map(|_| delta(json!({ "content": "x" }), None));
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count });
    let mut chunks: Vec<String> = tokens.map(|chunk| format!("data: {chunk}\n\n")).collect();
    if ends {
        let last = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                           "choices": [], "usage": usage });
        chunks.push(format!("data: {}\n\n", delta(json!({}), Some("stop"))));
        chunks.push(format!("data: {last}\n\ndata: [DONE]\n\n"));
    }
    let paced = futures_util::stream::unfold(chunks.into_iter(), |mut chunks| async move {
        let chunk = chunks.next()?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), chunks))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(paced)).into_response()
}
