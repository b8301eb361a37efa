//! `GET /admin/requests/{id}`: the story of one request, whoever's it was.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;

use super::{Admin, page};
use crate::http::error::Problem;
use crate::http::{digits, feedback, requests};

/// By the request's own id, the id of its completion, message or response, or what its answer had as `x-request-id`.
pub(super) async fn story(
    State(admin): State<Arc<Admin>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let found = admin.running()?.learning().any_story(feedback::id(&id)?).await;
    let story = found.map_err(|error| Problem::forgetful(&error))?;
    let story = story.ok_or_else(|| {
        Problem::not_found(
            "there is no request of that id, it was refused before it was sent, or it was too long ago",
        )
        .code("request_not_found")
    })?;
    Ok(page(&digits::shortened(requests::page(&story))))
}
