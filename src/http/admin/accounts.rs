//! `/admin/accounts`: what accounts may spend, and how they stand.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::Request;
use axum::response::Response;
use serde_json::json;

use crate::http::body;
use crate::http::error::ApiError;
use crate::http::path_params::PathParams;
use stint_types::tenant::AccountTerms;
use stint_types::units::AccountId;

use super::access::Admin;
use super::query::{PageQuery, QueryParams};
use super::show::page;
use super::state::AdminState;
use super::{read, show};

/// `GET /admin/accounts`: every account with terms or a key.
pub(super) async fn list(
    State(admin): State<Arc<AdminState>>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let span = PageQuery::read(asked, &["after", "limit"])?;
    let directory = admin.directory.snapshot();
    let terms: Vec<AccountTerms> = directory.terms();
    let source = |terms: &AccountTerms| directory.account(&terms.account).map(|(_, source)| source);
    let shown = |terms: &AccountTerms| match source(terms) {
        Ok(source) => show::account(terms, source, (admin.statement)(&terms.account).as_deref()),
        Err(_) => json!(null),
    };
    Ok(page(&span.page(&terms, |terms| terms.account.to_string(), shown)?))
}

/// `GET /admin/accounts/{path}`.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(path): PathParams<String>,
) -> Result<Response, ApiError> {
    shown(&admin, &parse(&path)?)
}

/// `PUT /admin/accounts/{path}`: these are its terms from now on; what is left out gets its default.
pub(super) async fn set(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(path): PathParams<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let account = parse(&path)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let terms = read::terms(&mut fields, &admin.catalog)?;
    fields.finish()?;
    caller.editor(&admin.directory).set_terms(&account, &terms).await?;
    tracing::info!(%account, "set an account's terms");
    shown(&admin, &account)
}

/// `DELETE /admin/accounts/{path}`: it has no terms of its own any more. Those above it hold still.
pub(super) async fn delete(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(path): PathParams<String>,
) -> Result<Response, ApiError> {
    let account = parse(&path)?;
    caller.editor(&admin.directory).drop_terms(&account).await?;
    tracing::info!(%account, "took an account's terms away");
    Ok(page(&json!({ "object": "account.deleted", "path": account.as_str(), "deleted": true })))
}

fn shown(admin: &AdminState, account: &AccountId) -> Result<Response, ApiError> {
    let (terms, source) = admin.directory.snapshot().account(account)?;
    Ok(page(&show::account(&terms, source, (admin.statement)(account).as_deref())))
}

fn parse(path: &str) -> Result<AccountId, ApiError> {
    path.parse::<AccountId>().map_err(|error| ApiError::invalid(None, error.to_string()))
}
