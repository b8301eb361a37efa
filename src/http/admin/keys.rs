//! `/admin/keys`: to make, list, change, rotate and revoke keys.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::http::body;
use crate::http::error::ApiError;
use crate::http::path_params::PathParams;
use stint_types::tenant::{KeyId, ListedKey, NewKey};
use stint_types::units::{AccountId, Timestamp};

use super::access::Admin;
use super::query::{PageQuery, QueryParams};
use super::show::page;
use super::state::AdminState;
use super::{read, show};

/// `GET /admin/keys`: every key, the revoked ones too; with `account`, only the key of that path, or those of that account and below it.
pub(super) async fn list(
    State(admin): State<Arc<AdminState>>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let span = PageQuery::read(asked, &["after", "limit", "account"])?;
    let mut keys = admin.directory.snapshot().keys();
    if let Some(account) = span.account.as_deref().map(AccountId::new) {
        keys.retain(|key| account.contains(&key.terms.account));
    }
    let now = admin.now();
    Ok(page(&span.page(&keys, |key| key.id.to_string(), |key| show::key(key, now))?))
}

/// `POST /admin/keys`: the answer has the secret, this once.
pub(super) async fn create(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let mut fields = body::fields(request, &admin.settings).await?;
    let account = read::account(&mut fields)?;
    let wanted = read::key(&mut fields, &admin.catalog)?;
    fields.finish()?;
    let (key, secret) = caller.editor(&admin.directory).create(&account, &wanted).await?;
    tracing::info!(key = %key.id, %account, "made a key");
    Ok((StatusCode::CREATED, with_secret(&key, secret)).into_response())
}

/// `GET /admin/keys/{id}`: with how its limits stand.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let key = admin.directory.snapshot().key(parse(&id)?)?;
    let standing = (admin.statement)(&key.terms.account);
    let more = ("standing", show::standing(standing.as_deref()));
    Ok(page(&with(show::key(&key, admin.now()), more)))
}

/// `PATCH /admin/keys/{id}`: stated members replace the earlier ones; the others stay.
pub(super) async fn change(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(id): PathParams<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let wanted = read::key(&mut fields, &admin.catalog)?;
    fields.finish()?;
    let key = caller.editor(&admin.directory).change(id, &wanted).await?;
    tracing::info!(key = %id, "changed a key");
    Ok(shown(&key))
}

/// `POST /admin/keys/{id}/rotate`: another secret, in the answer this once. With `grace` the old one is taken for so
/// long beside it.
pub(super) async fn rotate(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(id): PathParams<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let grace = read::grace(&mut fields)?;
    fields.finish()?;
    let (key, secret) = caller.editor(&admin.directory).rotate(id, grace).await?;
    tracing::info!(key = %id, ?grace, "rotated a key");
    Ok(with_secret(&key, secret))
}

/// `DELETE /admin/keys/{id}`: refused from the next request on. The record stays, so that its secret cannot come back.
pub(super) async fn revoke(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let key = caller.editor(&admin.directory).revoke(id).await?;
    tracing::info!(key = %key.id, "revoked a key");
    Ok(shown(&key))
}

fn shown(key: &ListedKey) -> Response {
    page(&show::key(key, Timestamp::now()))
}

fn with_secret(key: &ListedKey, secret: NewKey) -> Response {
    page(&with(show::key(key, Timestamp::now()), ("secret", json!(secret.reveal()))))
}

fn with(mut value: Value, (name, more): (&str, Value)) -> Value {
    if let Value::Object(members) = &mut value {
        members.insert(name.to_owned(), more);
    }
    value
}

/// What is not an id is nobody's.
fn parse(id: &str) -> Result<KeyId, ApiError> {
    id.parse::<KeyId>().map_err(|error| ApiError::not_found(error.to_string()))
}
