//! What every router of this server has: one row per route, answers to unknown paths, and the layers around all routes.
//! The API's table and the admin API's are built with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use futures_util::FutureExt;

use stint_types::units::RequestId;

use super::access_log::AccessContext;
use super::api_state::ApiState;
use super::around::{Around, AroundLayer, RouteBehind};
use super::error::{ApiError, codes};
use super::{access_log, anthropic, auth, headers, late_requests, open_access, unserved_paths};

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

/// The routes with answers to unknown paths and with all layers.
pub(super) fn complete_router(routes: Router) -> Router {
    with_layers(with_fallbacks(routes))
}

/// What paths and methods that are not there are answered.
pub(super) fn with_fallbacks(routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| unserved_paths::not_served(&uri))
        .method_not_allowed_fallback(async |method: Method| ApiError::wrong_method(&method))
}

/// What [`Protection`] does, around all routes.
pub(super) fn with_layers(routes: Router) -> Router {
    routes.layer(AroundLayer(Protection))
}

/// The same, with a line in the log for each request; and what [`open_access`] does.
pub(super) fn with_logged_layers(routes: Router, context: AccessContext, service: Arc<ApiState>) -> Router {
    routes.layer(AroundLayer(LoggedProtection { context, service }))
}

async fn serve_unless_late(service: &ApiState, request: Request<Body>, next: RouteBehind<'_>) -> Response {
    match late_requests::refusal(service, &request) {
        Some(refusal) => refusal,
        None => open_access::guard(service, request, next).await,
    }
}

/// Errors in the API's own form wherever they come from, an id on every answer, exactly one host, and keys that
/// do not show themselves. One layer for all of it: each layer of a router allocates and copies for every request.
#[derive(Debug, Clone)]
struct Protection;

impl Around for Protection {
    async fn answer(&self, request: Request<Body>, next: RouteBehind<'_>) -> Response {
        protect(request, |request| next.answer(request)).await
    }
}

/// The same of requests that are logged.
#[derive(Debug, Clone)]
struct LoggedProtection {
    context: AccessContext,
    service: Arc<ApiState>,
}

impl Around for LoggedProtection {
    async fn answer(&self, request: Request<Body>, next: RouteBehind<'_>) -> Response {
        let guarded = |request| serve_unless_late(&self.service, request, next);
        access_log::record(&self.context, request, |request| protect(request, guarded)).await
    }
}

async fn protect<F: Future<Output = Response>>(
    mut request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    auth::hide_keys(request.headers_mut());
    let checked = |request| check_host_and_id(request, |request| catch_panic(next(request)));
    anthropic::rewrite_errors(request, checked).await
}

async fn check_host_and_id<F: Future<Output = Response>>(
    request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    let mut response = match check_host(&request) {
        Ok(()) => next(request).await,
        Err(message) => ApiError::invalid(None, message).with_code(codes::BAD_HOST).into_response(),
    };
    if !headers::has_request_id(response.headers()) {
        headers::set_request_id(response.headers_mut(), RequestId::new());
    }
    response
}

async fn catch_panic(work: impl Future<Output = Response>) -> Response {
    // Nothing of a handler that panicked is used again.
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

/// A proxy and we must not disagree about whom a request is for.
fn check_host(request: &Request<Body>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, authority) = (hosts.next(), request.uri().authority());
    if hosts.next().is_some() {
        return Err("there must be exactly one Host header, and there are several");
    }
    match (host, authority) {
        (Some(host), Some(authority))
            if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            Err(
                "the Host header names another host than the address of the request; send the same host in both",
            )
        }
        // Older checks of load balancers have none.
        (None, None) if request.version() >= Version::HTTP_11 => {
            Err("there must be exactly one Host header, and there is none")
        }
        _ => Ok(()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what catching gives back")]
fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    let id = RequestId::new();
    let mut response = ApiError::internal(id, text.unwrap_or("a panic of an unknown kind")).into_response();
    headers::set_request_id(response.headers_mut(), id);
    response
}
