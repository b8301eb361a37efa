//! What is answered while the server ends: health and metrics as always, and everything else with the advice to ask another gateway.

use axum::body::Body;
use axum::http::{HeaderValue, Request, Version, header};
use axum::response::{IntoResponse, Response};

use crate::gateway::RequestRefusal;

use super::api_state::ApiState;
use super::error::ApiError;

/// What is served until nothing is accepted any more.
const SERVED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The answer to a request that begins while the server ends; nothing where it is served. Its connection ends with it, so that the next
/// one goes elsewhere.
pub(super) fn refusal(service: &ApiState, request: &Request<Body>) -> Option<Response> {
    if !service.gateway.is_stopping() || SERVED.contains(&request.uri().path()) {
        return None;
    }
    let mut response = ApiError::from(RequestRefusal::Stopping).into_response();
    if request.version() < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Some(response)
}
