//! An upstream of chat completions that refuses what a test says, answers in two tokens with their chances, and writes down
//! what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// What it refuses.
type Refuses = fn(&Value) -> bool;

pub(super) struct Picky {
    pub(super) base: String,
    log: Arc<Mutex<Vec<Value>>>,
    _tasks: Tasks,
}

impl Picky {
    pub(super) fn start(refuses: Refuses) -> Picky {
        let (tasks, log) = (Tasks::default(), Arc::<Mutex<Vec<Value>>>::default());
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let seen = log.clone();
        let answer = move |body: String| async move {
            let body: Value = serde_json::from_str(&body).unwrap();
            seen.lock().unwrap().push(body.clone());
            if refuses(&body) { refusal() } else { answer(&body) }
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().fallback(answer)));
        Picky { base, log, _tasks: tasks }
    }

    /// All that it was asked, in order.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.log.lock().unwrap().clone()
    }
}

fn refusal() -> Response {
    let error =
        json!({ "error": { "message": "this server was started without that", "type": "BadRequestError" } });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, json, error.to_string()).into_response()
}

fn answer(body: &Value) -> Response {
    let told = |token: &str| match body["logprobs"] == true {
        true => {
            json!({ "content": [{ "token": token, "logprob": -0.5, "bytes": null, "top_logprobs": [] }] })
        }
        false => Value::Null,
    };
    let choice = |delta: Value, logprobs: Value, finish: Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": [{ "index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish }] })
    };
    let mut events: Vec<Value> = ["It", " is", " so"]
        .into_iter()
        .map(|token| choice(json!({ "content": token }), told(token), Value::Null))
        .collect();
    events.push(choice(json!({}), Value::Null, json!("stop")));
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8 });
    events.push(
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [],
        "usage": usage }),
    );
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], events + "data: [DONE]\n\n").into_response()
}
