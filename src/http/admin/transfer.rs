//! `/admin/export` and `/admin/import`: keys and accounts as TOML, so that they can live in a repository.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{Request, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::http::body;
use crate::http::error::ApiError;
use stint_types::tenant::to_toml;

use super::access::Admin;
use super::show::page;
use super::state::AdminState;

const TOML: &str = "application/toml";

/// `GET /admin/export`: everything in force, with hashes only.
pub(super) async fn export(State(admin): State<Arc<AdminState>>) -> Response {
    let headers = [(header::CONTENT_TYPE, TOML), (header::CACHE_CONTROL, "no-store")];
    (headers, to_toml(&admin.directory.snapshot())).into_response()
}

/// `POST /admin/import`: all of it or nothing.
pub(super) async fn import(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    if parts.headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != TOML) {
        return Err(ApiError::not_toml());
    }
    let text = body::collect(&parts.headers, body, &admin.settings).await?;
    let text = std::str::from_utf8(&text).map_err(|_| ApiError::invalid(None, "the body is not UTF-8"))?;
    let wanted = (admin.read)(text).map_err(|mistakes| ApiError::invalid(None, mistakes))?;
    let count = caller.editor(&admin.directory).import(&wanted).await?;
    tracing::info!(?count, "imported keys and accounts");
    Ok(page(&json!({
        "object": "import",
        "created": count.created,
        "changed": count.changed,
        "unchanged": count.unchanged,
    })))
}
