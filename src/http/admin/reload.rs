//! `/admin/reload`: reloads the configuration and answers what changed or what is wrong.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::Response;
use serde_json::json;

use crate::http::error::ApiError;

use super::access::Admin;
use super::audit;
use super::show::page;
use super::state::{AdminState, ReloadOutcome};

/// `POST /admin/reload`: all of the file or nothing, as after SIGHUP. The answer comes when it is in force.
pub(super) async fn reload(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
) -> Result<Response, ApiError> {
    audit::note(&admin, &caller, "configuration.reload", "configuration".to_owned(), None).await?;
    match (admin.reload)().await {
        Some(ReloadOutcome::Applied(changed)) => Ok(page(&json!({ "object": "reload", "changed": changed }))),
        Some(ReloadOutcome::Refused(mistakes)) => Err(ApiError::invalid_config(&mistakes)),
        None => {
            let message = "no server runs here that could go by another configuration";
            Err(ApiError::overloaded(message.to_owned(), Duration::from_secs(1)))
        }
    }
}
