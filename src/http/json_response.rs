//! A JSON value as a response.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A JSON value as a response.
pub(super) fn json_response(value: &Value) -> Response {
    json_text(value.to_string())
}

/// The text of a JSON value as a response.
pub(super) fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
