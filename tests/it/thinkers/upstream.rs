//! A model behind OpenAI's API that thinks before it answers, and holds the limit that it is told as its vendor does: an answer
//! that the limit ends is `length`, and nothing is refused.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// Where its thought goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thought {
    /// Into `reasoning_content`.
    Shown,
    /// Nowhere: only the usage tells of it.
    Hidden,
    /// The same, and no count tells of it either.
    Untold,
    /// Into the text, which begins inside it.
    InText,
}

/// What it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habit {
    /// How much it thinks, in words of a token each.
    pub(super) thinks: u64,
    /// How much it thinks where it is asked for the least.
    pub(super) thinks_least: u64,
    pub(super) thought: Thought,
    /// It refuses requests for the lowest thinking effort.
    pub(super) refuses_least: bool,
}

/// How much it answers, in words.
pub(super) const ANSWER: u64 = 50;

/// The upstream. It serves until the test ends.
pub(super) struct Thinker {
    pub(super) base: String,
    log: Arc<Mutex<Vec<Value>>>,
    habit: Arc<Mutex<Habit>>,
    _tasks: Tasks,
}

impl Thinker {
    pub(super) fn start(habit: Habit) -> Thinker {
        let (tasks, log) = (Tasks::default(), Arc::<Mutex<Vec<Value>>>::default());
        let habit = Arc::new(Mutex::new(habit));
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let (seen, current) = (log.clone(), habit.clone());
        let answer = move |uri: Uri, body: String| async move {
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            if !uri.path().ends_with("/chat/completions") {
                return StatusCode::NOT_FOUND.into_response();
            }
            seen.lock().unwrap().push(body.clone());
            let habit = *current.lock().unwrap();
            answer(habit, &body)
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().fallback(answer)));
        Thinker { base, log, habit, _tasks: tasks }
    }

    /// What it was asked so far.
    pub(super) fn log(&self) -> Vec<Value> {
        self.log.lock().unwrap().clone()
    }

    /// It changes its ways.
    pub(super) fn becomes(&self, habit: Habit) {
        *self.habit.lock().unwrap() = habit;
    }
}

fn answer(habit: Habit, body: &Value) -> Response {
    let least = body["reasoning_effort"] == "minimal";
    if least && habit.refuses_least {
        let error = json!({ "error": { "message": "Unsupported value: 'minimal'", "type": "invalid_request_error",
                                       "param": "reasoning_effort", "code": "unsupported_value" } });
        return (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], error.to_string())
            .into_response();
    }
    let limit = ["max_completion_tokens", "max_tokens"].iter().find_map(|name| body[*name].as_u64());
    let limit = limit.unwrap_or(u64::MAX);
    let wanted = if least { habit.thinks_least } else { habit.thinks };
    let thinks = wanted.min(limit);
    let answers = ANSWER.min(limit - thinks);
    let mut events: Vec<Value> = (0..thinks).filter_map(|at| thought(habit.thought, at)).collect();
    if thinks == wanted && habit.thought == Thought::InText {
        events.push(json!({ "content": "</think>" }));
    }
    events.extend((0..answers).map(|at| json!({ "content": format!("so{} ", at % 10) })));
    let finish = if thinks + answers < wanted + ANSWER { "length" } else { "stop" };
    stream(habit.thought, &events, finish, (thinks, answers))
}

fn thought(thought: Thought, at: u64) -> Option<Value> {
    let text = format!("hm{} ", at % 10);
    match thought {
        Thought::Shown => Some(json!({ "reasoning_content": text })),
        Thought::Hidden | Thought::Untold => None,
        Thought::InText => Some(json!({ "content": text })),
    }
}

fn stream(thought: Thought, deltas: &[Value], finish: &str, (thinks, answers): (u64, u64)) -> Response {
    let chunk = |delta: &Value, finish: Option<&str>| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    let mut usage = json!({ "prompt_tokens": 5, "completion_tokens": thinks + answers,
                            "total_tokens": 5 + thinks + answers });
    if thought == Thought::Hidden {
        usage["completion_tokens_details"] = json!({ "reasoning_tokens": thinks });
    }
    let mut events: Vec<String> =
        deltas.iter().map(|delta| format!("data: {}\n\n", chunk(delta, None))).collect();
    events.push(format!("data: {}\n\n", chunk(&json!({}), Some(finish))));
    events.push(format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage })));
    let sent =
        futures_util::stream::iter(events.into_iter().map(|event| Ok::<_, Infallible>(Bytes::from(event))));
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(sent)).into_response()
}
