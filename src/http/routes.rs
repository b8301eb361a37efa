//! The API's route table: every method and path with its handler. `app` builds the listeners' routers from it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use axum::routing::{MethodRouter, any, delete, get, post};

use super::access_log::AccessContext;
use super::account_requests::{self, AccountRequests};
use super::anthropic::messages;
use super::api_state::ApiState;
use super::around::{Around, AroundLayer, RouteBehind};
use super::body_limiter::{self, BodyLimiter};
use super::endpoint_counters::EndpointCounters;
use super::open_access::OpenAccessGuard;
use super::openai::completions;
use super::responses::{self, conversations};
use super::router::{ApiRoute, build_router, complete_router, with_fallbacks, with_logged_layers};
use super::{
    cors, embeddings, episodes, feedback, front, idempotency_key, openapi, pages, plan, requests, usage,
};

/// The API; with the monitoring pages where those have no listener of their own. The metrics need an admin's key there, once there
/// are keys: they show who spends how much.
pub fn api(service: &Arc<ApiState>) -> Router {
    api_with_limits(service, BodyLimiter::new(&service.settings), AccountRequests::default())
}

/// The same, with bodies in a room, and requests of accounts among others, that it may share.
pub fn api_with_limits(service: &Arc<ApiState>, room: BodyLimiter, requests: AccountRequests) -> Router {
    idempotency_key::zero_metrics(&service.metrics);
    let front = Router::new().route("/", any(front::page)).with_state(service.clone());
    let routes = build_router(api_routes(), service.clone())
        .layer(AroundLayer(Limits { service: service.clone(), room, requests }))
        .merge(front)
        .merge(openapi::routes());
    let routes = with_fallbacks(match service.settings.metrics_listen {
        Some(_) => routes,
        None => routes.merge(monitoring_routes(service, get(pages::metrics_for_admins))),
    });
    let paths = ["/", "/openapi.json"].into_iter().chain(api_table().into_iter().map(|(_, path)| path));
    let counters = EndpointCounters::new(&service.metrics, paths);
    let context = AccessContext { counters, tracer: service.tracer.clone() };
    let routes = with_logged_layers(routes, context, service.clone());
    match &service.settings.cors {
        Some(origins) => routes.layer(cors::layer(origins)),
        None => routes,
    }
}

/// Holds a request to the room for bodies, and to its account's share of requests in flight.
#[derive(Debug, Clone)]
struct Limits {
    service: Arc<ApiState>,
    room: BodyLimiter,
    requests: AccountRequests,
}

impl Around for Limits {
    async fn answer(&self, request: Request<Body>, next: RouteBehind<'_>) -> Response {
        let Limits { service, room, requests } = self;
        let counted =
            |request| account_requests::limit(service, requests, request, |request| next.answer(request));
        body_limiter::limit_bodies(room, request, counted).await
    }
}

/// Every method and path of the API, the monitoring pages among them.
pub fn api_table() -> Vec<(&'static str, &'static str)> {
    let rows = api_routes().into_iter().chain(monitoring_table(get(pages::metrics)));
    rows.map(|row| (row.method, row.path)).collect()
}

fn api_routes() -> Vec<ApiRoute<Arc<ApiState>>> {
    vec![
        ApiRoute::new("POST", "/v1/chat/completions", post(completions::chat_completions)),
        ApiRoute::new("POST", "/v1/completions", post(completions::text_completions)),
        ApiRoute::new("POST", "/v1/embeddings", post(embeddings::embeddings)),
        ApiRoute::new("POST", "/v1/messages", post(messages::messages)),
        ApiRoute::new("POST", "/v1/messages/count_tokens", post(messages::count_tokens)),
        ApiRoute::new("POST", "/v1/responses", post(responses::respond)),
        ApiRoute::new("POST", "/v1/responses/compact", post(responses::compact)),
        ApiRoute::new("POST", "/v1/responses/input_tokens", post(responses::input_tokens)),
        ApiRoute::new("GET", "/v1/responses/{id}", get(responses::retrieve)),
        ApiRoute::new("DELETE", "/v1/responses/{id}", delete(responses::delete)),
        ApiRoute::new("POST", "/v1/responses/{id}/cancel", post(responses::cancel)),
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
    let routes = monitoring_routes(service, get(pages::metrics));
    // A listener that others reach shows everybody what it has, by any name.
    let is_for_others = service.settings.metrics_listen.is_some_and(|listen| !listen.ip().is_loopback());
    if is_for_others {
        return complete_router(routes);
    }
    complete_router(routes.layer(AroundLayer(OpenAccessGuard(service.clone()))))
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
