//! `GET` and `DELETE /v1/responses/{id}`, and what was put in: responses that can be had again.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use crate::agent::stored::StoredResponse;
use crate::http::auth;
use crate::http::error::ApiError;
use crate::http::router::ApiState;

use super::item::normalized;
use super::listing::{ItemPageQuery, json_response, pairs};
use super::load_context::{parse_items, store_unavailable};
use super::request_id_of;

/// The response as it was told.
pub(in crate::http) async fn retrieve(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    if pairs(query.as_deref()).any(|(name, value)| name == "stream" && value != "false") {
        let why = "is not offered for what has ended; leave it out";
        return Err(ApiError::invalid(Some("stream"), why));
    }
    let kept = find(&service, &headers, &id).await?;
    let mut told: Value = serde_json::from_str(&kept.body).unwrap_or_default();
    if told.get("output").is_none() {
        told["output"] = parse_items(&kept.output).into();
    }
    Ok(json_response(&told))
}

/// Deletes it for good.
pub(in crate::http) async fn delete(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service.keys, &headers)?;
    let request = request_id_of(&id).ok_or_else(unknown)?;
    let deleted = service.responses.delete(&tenant.account, request).await;
    match deleted.map_err(|error| store_unavailable(&error))? {
        true => Ok(json_response(&json!({ "id": id, "object": "response", "deleted": true }))),
        false => Err(unknown()),
    }
}

/// What its request put in; what it continued is asked for by the ids of those.
pub(in crate::http) async fn input_items(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let wanted = ItemPageQuery::read(query.as_deref())?;
    let kept = find(&service, &headers, &id).await?;
    wanted.page_of(input_with_ids(&kept)).map(|listed| json_response(&listed))
}

async fn find(service: &ApiState, headers: &HeaderMap, id: &str) -> Result<StoredResponse, ApiError> {
    let tenant = auth::tenant(&service.keys, headers)?;
    let request = request_id_of(id).ok_or_else(unknown)?;
    let found = service.responses.find(&tenant.account, request, service.gateway.now()).await;
    found.map_err(|error| store_unavailable(&error))?.ok_or_else(unknown)
}

/// It says the same of what there never was, of what is gone, and of what is somebody else's.
fn unknown() -> ApiError {
    ApiError::not_found("this key has no response of that id, or it is not kept")
        .with_code("response_not_found")
}

/// The items that were put in, each with an id and in its full form.
pub(super) fn input_with_ids(kept: &StoredResponse) -> Vec<Value> {
    let hex = kept.id.to_string().replacen("req_", "", 1);
    let named = |(at, item): (usize, Value)| {
        let mut item = normalized(item);
        if item["id"].is_null() {
            item["id"] = format!("in_{hex}_{at}").into();
        }
        item
    };
    parse_items(&kept.input).into_iter().enumerate().map(named).collect()
}
