//! `GET /admin/requests/{id}`: the record of any key's request.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::http::error::{ApiError, codes};
use crate::http::path_params::PathParams;
use crate::http::{feedback, requests, rounding};

use super::show::page;
use super::state::AdminState;

/// By the request's own id, the id of its completion, message or response, or what its answer had as `x-request-id`.
pub(super) async fn request_record(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let found =
        admin.require_gateway()?.learning().any_request_record(feedback::parse_request_id(&id)?).await;
    let story = found.map_err(|error| ApiError::history_unavailable(&error))?;
    let story = story.ok_or_else(|| {
        ApiError::not_found(
            "there is no request of that id, it was refused before it was sent, or it was too long ago",
        )
        .with_code(codes::REQUEST_NOT_FOUND)
    })?;
    Ok(page(&rounding::rounded(requests::page(&story))))
}
