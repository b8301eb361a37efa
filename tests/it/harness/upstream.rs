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
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// What it does with a request; the caller says so in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers in so many tokens, one each millisecond, and says what it took.
    Tokens(u64),
    /// Answers in so many words of four characters, one every five milliseconds, and says what it took.
    Words(u64),
    /// The same with fifty milliseconds between them.
    Slowly(u64),
    /// Refuses with 500.
    Fails,
    /// Breaks off after so many tokens.
    BreaksOff(u64),
}

/// How many tokens were sent, by the caller's `user`.
type Written = Arc<Mutex<BTreeMap<String, u64>>>;

/// An upstream in this process. It serves until the test ends.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) base: String,
    log: Arc<Mutex<BTreeMap<String, u32>>>,
    written: Written,
    _tasks: Tasks,
}

impl Manner {
    /// The words for it in a message.
    pub(crate) fn words(self) -> String {
        match self {
            Manner::Tokens(count) => format!("tokens {count}"),
            Manner::Words(count) => format!("words {count}"),
            Manner::Slowly(count) => format!("slowly {count}"),
            Manner::Fails => "fails 0".to_owned(),
            Manner::BreaksOff(count) => format!("breaks {count}"),
        }
    }

    fn of(words: &str) -> Manner {
        let (word, count) = words.split_once(' ').unwrap();
        let count = count.parse().unwrap();
        match word {
            "tokens" => Manner::Tokens(count),
            "words" => Manner::Words(count),
            "slowly" => Manner::Slowly(count),
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
        let written = Written::default();
        let (seen, sent) = (log.clone(), written.clone());
        let answer = move |body: String| async move { answer(&body, &seen, &sent) };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().route("/v1/chat/completions", post(answer))));
        Upstream { base, log, written, _tasks: tasks }
    }

    /// How many tokens it has sent, by the caller's `user`.
    pub(crate) fn written(&self) -> BTreeMap<String, u64> {
        self.written.lock().unwrap().clone()
    }

    /// How often it was asked, by the caller's `user`.
    pub(crate) fn attempts(&self) -> BTreeMap<String, u32> {
        self.log.lock().unwrap().clone()
    }
}

fn answer(body: &str, log: &Mutex<BTreeMap<String, u32>>, written: &Written) -> Response {
    let request: Value = serde_json::from_str(body).unwrap();
    let user = request["user"].as_str().unwrap_or_default().to_owned();
    *log.lock().unwrap().entry(user.clone()).or_default() += 1;
    let sent = move |written: &Written| {
        let (user, written) = (user.clone(), written.clone());
        move || *written.lock().unwrap().entry(user.clone()).or_default() += 1
    };
    let content = &request["messages"][0]["content"];
    let words = content.as_str().or(content[0]["text"].as_str()).unwrap();
    match Manner::of(words) {
        Manner::Fails => (StatusCode::INTERNAL_SERVER_ERROR, "{}").into_response(),
        Manner::Tokens(count) => events((count, "x"), true, Duration::from_millis(1), sent(written)),
        Manner::Words(count) => events((count, "wor "), true, Duration::from_millis(5), sent(written)),
        Manner::Slowly(count) => events((count, "wor "), true, Duration::from_millis(50), sent(written)),
        Manner::BreaksOff(count) => events((count, "x"), false, Duration::from_millis(1), sent(written)),
    }
}

/// So many tokens; then, if it comes to an end, the reason and the usage.
fn events(
    (count, text): (u64, &str),
    ends: bool,
    pause: Duration,
    sent: impl Fn() + Send + Sync + 'static,
) -> Response {
    let delta = |delta: Value, finish: Option<&str>| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    let tokens = (0..count).map(|_| delta(json!({ "content": text }), None));
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count });
    let mut chunks: Vec<String> = tokens.map(|chunk| format!("data: {chunk}\n\n")).collect();
    if ends {
        let last = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                           "choices": [], "usage": usage });
        chunks.push(format!("data: {}\n\n", delta(json!({}), Some("stop"))));
        chunks.push(format!("data: {last}\n\ndata: [DONE]\n\n"));
    }
    let paced =
        futures_util::stream::unfold((chunks.into_iter(), sent), move |(mut chunks, sent)| async move {
            let chunk = chunks.next()?;
            tokio::time::sleep(pause).await;
            if chunk.contains("\"content\"") {
                sent();
            }
            Some((Ok::<_, Infallible>(Bytes::from(chunk)), (chunks, sent)))
        });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(paced)).into_response()
}
