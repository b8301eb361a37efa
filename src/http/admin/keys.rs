//! `/admin/keys`: to make, list, change, rotate and revoke keys.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::tenant::{KeyId, Listed, NewKey};
use crate::units::Timestamp;

use super::query::{Asked, Span};
use super::{Admin, page, read, show};
use crate::http::body;
use crate::http::error::Problem;

/// `GET /admin/keys`: every key, the revoked ones too; with `account`, only that account's.
pub(super) async fn list(State(admin): State<Arc<Admin>>, asked: Asked) -> Result<Response, Problem> {
    let span = Span::read(asked, &["after", "limit", "account"])?;
    let mut keys = admin.directory.book().keys();
    if let Some(account) = &span.account {
        keys.retain(|key| key.terms.account.as_str() == account);
    }
    let now = Timestamp::now();
    Ok(page(&span.of(&keys, |key| key.id.to_string(), |key| show::key(key, now))?))
}

/// `POST /admin/keys`: the answer has the secret, this once.
pub(super) async fn create(
    State(admin): State<Arc<Admin>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let mut fields = body::fields(request, &admin.settings).await?;
    let account = read::account(&mut fields)?;
    let wanted = read::key(&mut fields, &admin.catalog)?;
    fields.end()?;
    let (key, secret) = admin.directory.create(&account, &wanted).await?;
    tracing::info!(key = %key.id, %account, "made a key");
    Ok((StatusCode::CREATED, with_secret(&key, secret)).into_response())
}

/// `GET /admin/keys/{id}`: with how its limits stand.
pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let key = admin.directory.book().key(parse(&id)?)?;
    let standing = (admin.statement)(&key.terms.account);
    let more = ("standing", show::standing(standing.as_deref()));
    Ok(page(&with(show::key(&key, Timestamp::now()), more)))
}

/// `PATCH /admin/keys/{id}`: what is said replaces what was; what is not said stays.
pub(super) async fn change(
    State(admin): State<Arc<Admin>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let id = parse(&id)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let wanted = read::key(&mut fields, &admin.catalog)?;
    fields.end()?;
    let key = admin.directory.change(id, &wanted).await?;
    tracing::info!(key = %id, "changed a key");
    Ok(shown(&key))
}

/// `POST /admin/keys/{id}/rotate`: another secret, in the answer this once. With `grace` the old one is taken for so
/// long beside it.
pub(super) async fn rotate(
    State(admin): State<Arc<Admin>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let id = parse(&id)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let grace = read::grace(&mut fields)?;
    fields.end()?;
    let (key, secret) = admin.directory.rotate(id, grace).await?;
    tracing::info!(key = %id, ?grace, "rotated a key");
    Ok(with_secret(&key, secret))
}

/// `DELETE /admin/keys/{id}`: refused from the next request on. The record stays, so that its secret cannot come back.
pub(super) async fn revoke(
    State(admin): State<Arc<Admin>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let key = admin.directory.revoke(parse(&id)?).await?;
    tracing::info!(key = %key.id, "revoked a key");
    Ok(shown(&key))
}

fn shown(key: &Listed) -> Response {
    page(&show::key(key, Timestamp::now()))
}

fn with_secret(key: &Listed, secret: NewKey) -> Response {
    page(&with(show::key(key, Timestamp::now()), ("secret", json!(secret.reveal()))))
}

fn with(mut value: Value, (name, more): (&str, Value)) -> Value {
    if let Value::Object(members) = &mut value {
        members.insert(name.to_owned(), more);
    }
    value
}

/// What is not an id is nobody's.
fn parse(id: &str) -> Result<KeyId, Problem> {
    id.parse::<KeyId>().map_err(|error| Problem::not_found(error.to_string()))
}
