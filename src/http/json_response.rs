//! A JSON value as a response.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A JSON value as a response.
pub(super) fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
