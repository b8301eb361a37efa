//! `/admin/accounts`: what accounts may spend, and how they stand.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use axum::response::Response;
use serde_json::json;

use crate::tenant::Terms;
use crate::units::AccountId;

use super::query::{Asked, Span};
use super::{Admin, page, read, show};
use crate::http::body;
use crate::http::error::Problem;

/// `GET /admin/accounts`: every account with terms or a key.
pub(super) async fn list(State(admin): State<Arc<Admin>>, asked: Asked) -> Result<Response, Problem> {
    let span = Span::read(asked, &["after", "limit"])?;
    let book = admin.directory.book();
    let terms: Vec<Terms> = book.terms();
    let source = |terms: &Terms| book.account(&terms.account).map(|(_, source)| source);
    let shown = |terms: &Terms| match source(terms) {
        Ok(source) => show::account(terms, source, (admin.statement)(&terms.account).as_deref()),
        Err(_) => json!(null),
    };
    Ok(page(&span.of(&terms, |terms| terms.account.to_string(), shown)?))
}

/// `GET /admin/accounts/{path}`.
pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    shown(&admin, &parse(&path)?)
}

/// `PUT /admin/accounts/{path}`: these are its terms from now on; what is not said is the usual.
pub(super) async fn set(
    State(admin): State<Arc<Admin>>,
    Path(path): Path<String>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let account = parse(&path)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let terms = read::terms(&mut fields, &admin.catalog)?;
    fields.end()?;
    admin.directory.set_terms(&account, &terms).await?;
    tracing::info!(%account, "set an account's terms");
    shown(&admin, &account)
}

/// `DELETE /admin/accounts/{path}`: it has no terms of its own any more. Those above it hold still.
pub(super) async fn forget(
    State(admin): State<Arc<Admin>>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let account = parse(&path)?;
    admin.directory.drop_terms(&account).await?;
    tracing::info!(%account, "took an account's terms away");
    Ok(page(&json!({ "object": "account.deleted", "path": account.as_str(), "deleted": true })))
}

fn shown(admin: &Admin, account: &AccountId) -> Result<Response, Problem> {
    let (terms, source) = admin.directory.book().account(account)?;
    Ok(page(&show::account(&terms, source, (admin.statement)(account).as_deref())))
}

fn parse(path: &str) -> Result<AccountId, Problem> {
    path.parse::<AccountId>().map_err(|error| Problem::invalid(None, error.to_string()))
}
