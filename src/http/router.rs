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

use crate::agent::conversations::ConversationService;
use crate::agent::stored::ResponseService;
use crate::gateway::Gateway;
use crate::idempotency::Idempotency;
use crate::metrics::Metrics;
use crate::tenant::KeyLookup;
use crate::units::RequestId;

use super::error::ApiError;
use super::{
    BodyLimiter, Settings, access_log, anthropic, auth, body_limiter, chat, cors, embeddings, episodes,
    feedback, front, headers, idempotency_key, messages, pages, plan, requests, responses, unserved_paths,
    usage,
};
use responses::conversations;

/// What the handlers ask.
pub struct ApiState {
    /// Limits and words of the wire.
    pub settings: Settings,
    /// Who may ask.
    pub keys: KeyLookup,
    /// Who answers.
    pub gateway: Gateway,
    /// What was answered under callers' own keys.
    pub idempotency: Idempotency,
    /// Responses that callers may come back to.
    pub responses: ResponseService,
    /// Conversations that callers may come back to.
    pub conversations: ConversationService,
    /// What Prometheus sees.
    pub metrics: Arc<Metrics>,
    /// Brings the series up to date that are read rather than counted, before they are shown.
    pub refresh: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The API; with the monitoring pages where those have no listener of their own. Where others than this machine
/// reach it, the metrics need a key: they show who spends how much.
pub fn api(service: &Arc<ApiState>) -> Router {
    api_with_limiter(service, BodyLimiter::new(&service.settings))
}

/// The same, with bodies in a room that it may share with others.
pub fn api_with_limiter(service: &Arc<ApiState>, room: BodyLimiter) -> Router {
    idempotency_key::zero_metrics(&service.metrics);
    let front = Router::new().route("/", any(front::page)).with_state(service.clone());
    let routes = build_router(api_routes(), service.clone())
        .layer(from_fn_with_state(room, body_limiter::limit_bodies))
        .merge(front);
    let routes = complete_router(
        match (service.settings.metrics_listen, service.settings.listen.ip().is_loopback()) {
            (Some(_), _) => routes,
            (None, true) => routes.merge(monitoring_routes(service, get(pages::metrics))),
            (None, false) => routes.merge(monitoring_routes(service, get(pages::metrics_with_key))),
        },
    );
    let routes = routes.layer(from_fn(access_log::record));
    match &service.settings.cors {
        Some(origins) => routes.layer(cors::layer(origins)),
        None => routes,
    }
}

/// Every method and path of the API, the monitoring pages among them.
pub fn api_table() -> Vec<(&'static str, &'static str)> {
    let rows = api_routes().into_iter().chain(monitoring_table(get(pages::metrics)));
    rows.map(|row| (row.method, row.path)).collect()
}

fn api_routes() -> Vec<ApiRoute<Arc<ApiState>>> {
    vec![
        ApiRoute::new("POST", "/v1/chat/completions", post(chat::completions)),
        ApiRoute::new("POST", "/v1/completions", post(chat::text_completions)),
        ApiRoute::new("POST", "/v1/embeddings", post(embeddings::embeddings)),
        ApiRoute::new("POST", "/v1/messages", post(messages::messages)),
        ApiRoute::new("POST", "/v1/messages/count_tokens", post(messages::count_tokens)),
        ApiRoute::new("POST", "/v1/responses", post(responses::respond)),
        ApiRoute::new("GET", "/v1/responses/{id}", get(responses::retrieve)),
        ApiRoute::new("DELETE", "/v1/responses/{id}", delete(responses::delete)),
        ApiRoute::new("GET", "/v1/responses/{id}/input_items", get(responses::input_items)),
        ApiRoute::new("POST", "/v1/conversations", post(conversations::create)),
        ApiRoute::new("GET", "/v1/conversations/{id}", get(conversations::retrieve)),
        ApiRoute::new("POST", "/v1/conversations/{id}", post(conversations::set_metadata)),
        ApiRoute::new("DELETE", "/v1/conversations/{id}", delete(conversations::delete)),
        ApiRoute::new("GET", "/v1/conversations/{id}/items", get(conversations::list)),
        ApiRoute::new("POST", "/v1/conversations/{id}/items", post(conversations::append)),
        ApiRoute::new("GET", "/v1/conversations/{id}/items/{item}", get(conversations::item)),
        ApiRoute::new("DELETE", "/v1/conversations/{id}/items/{item}", delete(conversations::remove)),
        ApiRoute::new("POST", "/v1/plan", post(plan::plan)),
        ApiRoute::new("GET", "/v1/models", get(pages::models)),
        ApiRoute::new("GET", "/v1/models/{*name}", get(pages::model)),
        ApiRoute::new("GET", "/v1/allowance", get(pages::allowance)),
        ApiRoute::new("GET", "/v1/usage", get(usage::usage)),
        ApiRoute::new("POST", "/v1/feedback", post(feedback::feedback)),
        ApiRoute::new("GET", "/v1/requests/{id}", get(requests::request_record)),
        ApiRoute::new("GET", "/v1/episodes/{id}", get(episodes::episode)),
    ]
}

/// `/metrics`, `/healthz` and `/readyz` alone.
pub fn monitoring(service: &Arc<ApiState>) -> Router {
    complete_router(monitoring_routes(service, get(pages::metrics)))
}

fn monitoring_routes(service: &Arc<ApiState>, metrics: MethodRouter<Arc<ApiState>>) -> Router {
    build_router(monitoring_table(metrics), service.clone())
}

fn monitoring_table(metrics: MethodRouter<Arc<ApiState>>) -> Vec<ApiRoute<Arc<ApiState>>> {
    vec![
        ApiRoute::new("GET", "/metrics", metrics),
        ApiRoute::new("GET", "/healthz", get(pages::healthz)),
        ApiRoute::new("GET", "/readyz", get(pages::readyz)),
    ]
}

/// One method of one path. The routes are data, so that tests can walk them.
pub(super) struct ApiRoute<S> {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    handler: MethodRouter<S>,
}

impl<S> ApiRoute<S> {
    pub(super) fn new(method: &'static str, path: &'static str, answer: MethodRouter<S>) -> ApiRoute<S> {
        ApiRoute { method, path, handler: answer }
    }
}

pub(super) fn build_router<S: Clone + Send + Sync + 'static>(rows: Vec<ApiRoute<S>>, state: S) -> Router {
    let add = |router: Router<S>, row: ApiRoute<S>| router.route(row.path, row.handler);
    rows.into_iter().fold(Router::new(), add).with_state(state)
}

fn complete_router(routes: Router) -> Router {
    with_layers(with_fallbacks(routes))
}

/// What paths and methods that are not there are answered.
pub(super) fn with_fallbacks(routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| unserved_paths::not_served(&uri))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}

/// Errors in the API's own form wherever they come from, an id on every answer, exactly one host, and keys that
/// do not show themselves.
pub(super) fn with_layers(routes: Router) -> Router {
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(check_host_and_id))
        .layer(from_fn(anthropic::rewrite_errors))
        .layer(SetSensitiveRequestHeadersLayer::new(auth::HEADERS))
}

async fn check_host_and_id(request: Request<Body>, next: Next) -> Response {
    let id = RequestId::new();
    let mut response = match has_one_host(request.headers(), &request) {
        true => next.run(request).await,
        false => ApiError::invalid(None, "there must be exactly one Host header")
            .with_code("bad_host")
            .into_response(),
    };
    if !headers::has_request_id(response.headers()) {
        headers::set_request_id(response.headers_mut(), id);
    }
    response
}

/// A proxy and we must not disagree about whom a request is for.
fn has_one_host(headers: &HeaderMap, request: &Request<Body>) -> bool {
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
    let mut response = ApiError::internal(id, text.unwrap_or("a panic of an unknown kind")).into_response();
    headers::set_request_id(response.headers_mut(), id);
    response
}
