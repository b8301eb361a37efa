//! `/admin/stored`: deletes the responses and conversations that callers have stored, for those who cannot do it themselves. The
//! books stay.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use serde_json::json;

use crate::http::error::ApiError;
use crate::http::path_params::PathParams;
use stint_types::tenant::KeyId;
use stint_types::units::AccountId;

use super::access::Admin;
use super::audit;
use super::show::page;
use super::state::AdminState;

/// `DELETE /admin/stored/{who}`: what a key has stored, by its id, also when it was revoked; or by a path, what all keys of that name
/// have, one after another.
pub(super) async fn delete(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(who): PathParams<String>,
) -> Result<Response, ApiError> {
    let (account, key) = owner(&admin, &who)?;
    let subject = key.map_or_else(|| account.to_string(), |key| format!("{account} {key}"));
    audit::note(&admin, &caller, "stored.delete", subject, None).await?;
    let (responses, conversations) = admin.stored.delete_of(&account, key).await?;
    tracing::info!(%account, ?key, responses, conversations, "deleted what was stored");
    Ok(page(&json!({
        "object": "stored.deleted",
        "account": account.as_str(),
        "key": key.map(|key| key.to_string()),
        "responses": responses,
        "conversations": conversations,
    })))
}

fn owner(admin: &AdminState, who: &str) -> Result<(AccountId, Option<KeyId>), ApiError> {
    if who.starts_with("key_") && !who.contains('/') {
        let id = who.parse::<KeyId>().map_err(|error| ApiError::not_found(error.to_string()))?;
        let key = admin.directory.snapshot().key(id)?;
        return Ok((key.terms.account, Some(id)));
    }
    let account =
        who.parse::<AccountId>().map_err(|error| ApiError::invalid(Some("who"), format!("is {error}")))?;
    Ok((account, None))
}
