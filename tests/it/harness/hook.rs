//! A guardrail's hook in this process, which says what it is told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// What the hook does.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    Says(Value),
    Fails,
    Dawdles,
}

/// A hook in this process, and what it was sent.
pub(crate) struct Hook {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    does: Arc<Mutex<Does>>,
    _tasks: Tasks,
}

impl Hook {
    pub(crate) fn start(does: Does) -> Hook {
        let tasks = Tasks::default();
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}/judge", bound.address());
        let (seen, does) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(Mutex::new(does)));
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        let (kept, doing) = (seen.clone(), does.clone());
        let judge = async move |headers: HeaderMap, body: String| -> Response {
            kept.lock().unwrap().push((headers, serde_json::from_str(&body).unwrap()));
            let does = doing.lock().unwrap().clone();
            match does {
                Does::Says(verdict) => verdict.to_string().into_response(),
                Does::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                Does::Dawdles => std::future::pending().await,
            }
        };
        tasks.spawn(server.serve(bound, Router::new().route("/judge", post(judge))));
        Hook { url, seen, does, _tasks: tasks }
    }

    pub(crate) fn now(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}
