//! The route table.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use crate::agent::conversations::ConversationKeeper;
use crate::agent::stored::ResponseKeeper;
use crate::gateway::Gateway;
use crate::idempotency::Idempotency;
use crate::metrics::Metrics;
use crate::tenant::Keys;
use crate::units::RequestId;

use super::error::Problem;
use super::{
    Room, Settings, access_log, anthropic, auth, bodies, chat, cors, embeddings, episodes, feedback, front,
    headers, messages, pages, plan, repeat, requests, responses, unserved, usage,
};
use responses::conversations;

/// What the handlers ask.
pub struct Service {
    /// Limits and words of the wire.
    pub settings: Settings,
    /// Who may ask.
    pub keys: Keys,
    /// Who answers.
    pub gateway: Gateway,
    /// What was answered under callers' own keys.
    pub idempotency: Idempotency,
    /// Responses that callers may come back to.
    pub responses: ResponseKeeper,
    /// Conversations that callers may come back to.
    pub conversations: ConversationKeeper,
    /// What Prometheus sees.
    pub metrics: Arc<Metrics>,
    /// Brings the series up to date that are read rather than counted, before they are shown.
    pub refresh: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The API; with the monitoring pages where those have no listener of their own. Where others than this machine
/// reach it, the metrics need a key: they show who spends how much.
pub fn api(service: &Arc<Service>) -> Router {
    api_within(service, Room::new(&service.settings))
}

/// The same, with bodies in a room that it may share with others.
pub fn api_within(service: &Arc<Service>, room: Room) -> Router {
    repeat::begin(&service.metrics);
    let front = Router::new().route("/", any(front::page)).with_state(service.clone());
    let routes =
        of_rows(rows(), service.clone()).layer(from_fn_with_state(room, bodies::bounded)).merge(front);
    let routes =
        finish(match (service.settings.metrics_listen, service.settings.listen.ip().is_loopback()) {
            (Some(_), _) => routes,
            (None, true) => routes.merge(monitoring_routes(service, get(pages::metrics))),
            (None, false) => routes.merge(monitoring_routes(service, get(pages::metrics_with_key))),
        });
    let routes = routes.layer(from_fn(access_log::record));
    match &service.settings.cors {
        Some(origins) => routes.layer(cors::layer(origins)),
        None => routes,
    }
}

/// Every method and path of the API, the monitoring pages among them.
pub fn api_table() -> Vec<(&'static str, &'static str)> {
    let rows = rows().into_iter().chain(monitoring_rows(get(pages::metrics)));
    rows.map(|row| (row.method, row.path)).collect()
}

fn rows() -> Vec<Row<Arc<Service>>> {
    vec![
        Row::new("POST", "/v1/chat/completions", post(chat::completions)),
        Row::new("POST", "/v1/completions", post(chat::texts)),
        Row::new("POST", "/v1/embeddings", post(embeddings::embeddings)),
        Row::new("POST", "/v1/messages", post(messages::messages)),
        Row::new("POST", "/v1/messages/count_tokens", post(messages::count_tokens)),
        Row::new("POST", "/v1/responses", post(responses::respond)),
        Row::new("GET", "/v1/responses/{id}", get(responses::retrieve)),
        Row::new("DELETE", "/v1/responses/{id}", delete(responses::delete)),
        Row::new("GET", "/v1/responses/{id}/input_items", get(responses::input_items)),
        Row::new("POST", "/v1/conversations", post(conversations::create)),
        Row::new("GET", "/v1/conversations/{id}", get(conversations::retrieve)),
        Row::new("POST", "/v1/conversations/{id}", post(conversations::describe)),
        Row::new("DELETE", "/v1/conversations/{id}", delete(conversations::delete)),
        Row::new("GET", "/v1/conversations/{id}/items", get(conversations::list)),
        Row::new("POST", "/v1/conversations/{id}/items", post(conversations::append)),
        Row::new("GET", "/v1/conversations/{id}/items/{item}", get(conversations::item)),
        Row::new("DELETE", "/v1/conversations/{id}/items/{item}", delete(conversations::remove)),
        Row::new("POST", "/v1/plan", post(plan::plan)),
        Row::new("GET", "/v1/models", get(pages::models)),
        Row::new("GET", "/v1/models/{*name}", get(pages::model)),
        Row::new("GET", "/v1/allowance", get(pages::allowance)),
        Row::new("GET", "/v1/usage", get(usage::usage)),
        Row::new("POST", "/v1/feedback", post(feedback::feedback)),
        Row::new("GET", "/v1/requests/{id}", get(requests::story)),
        Row::new("GET", "/v1/episodes/{id}", get(episodes::episode)),
    ]
}

/// `/metrics`, `/healthz` and `/readyz` alone.
pub fn monitoring(service: &Arc<Service>) -> Router {
    finish(monitoring_routes(service, get(pages::metrics)))
}

fn monitoring_routes(service: &Arc<Service>, metrics: MethodRouter<Arc<Service>>) -> Router {
    of_rows(monitoring_rows(metrics), service.clone())
}

fn monitoring_rows(metrics: MethodRouter<Arc<Service>>) -> Vec<Row<Arc<Service>>> {
    vec![
        Row::new("GET", "/metrics", metrics),
        Row::new("GET", "/healthz", get(pages::healthz)),
        Row::new("GET", "/readyz", get(pages::readyz)),
    ]
}

/// One method of one path. The routes are data, so that tests can walk them.
pub(super) struct Row<S> {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    answer: MethodRouter<S>,
}

impl<S> Row<S> {
    pub(super) fn new(method: &'static str, path: &'static str, answer: MethodRouter<S>) -> Row<S> {
        Row { method, path, answer }
    }
}

pub(super) fn of_rows<S: Clone + Send + Sync + 'static>(rows: Vec<Row<S>>, state: S) -> Router {
    let add = |router: Router<S>, row: Row<S>| router.route(row.path, row.answer);
    rows.into_iter().fold(Router::new(), add).with_state(state)
}

fn finish(routes: Router) -> Router {
    dress(endings(routes))
}

/// What paths and methods that are not there are answered.
pub(super) fn endings(routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| unserved::problem(&uri))
        .method_not_allowed_fallback(async || Problem::wrong_method())
}

/// Errors in the API's own form wherever they come from, an id on every answer, exactly one host, and keys that
/// do not show themselves.
pub(super) fn dress(routes: Router) -> Router {
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(frame))
        .layer(from_fn(anthropic::reworded))
        .layer(SetSensitiveRequestHeadersLayer::new(auth::HEADERS))
}

async fn frame(request: Request<Body>, next: Next) -> Response {
    let id = RequestId::new();
    let mut response = match one_host(request.headers(), &request) {
        true => next.run(request).await,
        false => {
            Problem::invalid(None, "there must be exactly one Host header").code("bad_host").into_response()
        }
    };
    if !headers::has_request_id(response.headers()) {
        headers::request_id(response.headers_mut(), id);
    }
    response
}

/// A proxy and we must not disagree about whom a request is for.
fn one_host(headers: &HeaderMap, request: &Request<Body>) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, authority) = (hosts.next(), request.uri().authority());
    if hosts.next().is_some() {
        return false;
    }
    match (host, authority) {
        (Some(host), Some(authority)) => host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()),
        (None, None) => false,
        _ => true,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the layer's signature")]
fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    let id = RequestId::new();
    let mut response = Problem::internal(id, text.unwrap_or("a panic of an unknown kind")).into_response();
    headers::request_id(response.headers_mut(), id);
    response
}
