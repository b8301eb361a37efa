//! `GET` and `DELETE /v1/responses/{id}`, and its input items: stored responses.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use crate::http::api_state::ApiState;
use crate::http::error::{ApiError, codes};
use crate::http::json_response::json_response;
use crate::http::path_params::PathParams;
use crate::http::{auth, writes};
use stint_sessions::agent::stored::StoredResponse;

use super::errors::responses_unavailable;
use super::id::request_id_of;
use super::item::{input_with_ids, parse_items};
use super::listing::{ItemPageQuery, pairs};

/// The response as it was answered.
pub(in crate::http) async fn retrieve(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    if pairs(query.as_deref()).any(|(name, value)| name == "stream" && value != "false") {
        let why = "is not offered for what has ended; leave it out";
        return Err(ApiError::invalid(Some("stream"), why));
    }
    let stored = find(&service, &headers, &id).await?;
    let mut response: Value = serde_json::from_str(&stored.body).unwrap_or_default();
    if response.get("output").is_none() {
        response["output"] = parse_items(&stored.output).into();
    }
    Ok(json_response(&response))
}

/// None can be cancelled: an answer is given to the call that waits for it, and hanging up stops it.
pub(in crate::http) async fn cancel(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    find(&service, &headers, &id).await?;
    let why = "only a response that was made in the background could be cancelled, and this one has ended; hang up to stop one";
    Err(ApiError::invalid(None, why))
}

/// Deletes it for good.
pub(in crate::http) async fn delete(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let request = request_id_of(&id).ok_or_else(unknown)?;
    let taken = writes::take(&service, &tenant, &Body::empty())?;
    let _turn = writes::begin(&service, &tenant, taken, 0).await;
    let deleted = service.responses.delete(&tenant, request, service.gateway.now()).await;
    if !deleted.map_err(|error| responses_unavailable(&error))? {
        return Err(unknown());
    }
    Ok(json_response(&json!({ "id": id, "object": "response", "deleted": true })))
}

/// What its request put in; what it continued is asked for by the ids of those.
pub(in crate::http) async fn input_items(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let wanted = ItemPageQuery::read(query.as_deref())?;
    let stored = find(&service, &headers, &id).await?;
    wanted.page_of(input_with_ids(&stored)).map(|listed| json_response(&listed))
}

async fn find(service: &ApiState, headers: &HeaderMap, id: &str) -> Result<StoredResponse, ApiError> {
    let tenant = auth::tenant(service, headers)?;
    let request = request_id_of(id).ok_or_else(unknown)?;
    let found = service.responses.find(&tenant, request, service.gateway.now()).await;
    found.map_err(|error| responses_unavailable(&error))?.ok_or_else(unknown)
}

/// It says the same of what there never was, of what is gone, and of what is somebody else's.
fn unknown() -> ApiError {
    ApiError::not_found("this key has no response of that id, or it is not stored")
        .with_code(codes::RESPONSE_NOT_FOUND)
}
