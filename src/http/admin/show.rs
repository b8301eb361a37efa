//! Keys and accounts as JSON. No secret and no hash of one is ever in it.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::http::pages;
use stint_ledger::LimitStatus;
use stint_types::tenant::{AccountTerms, AdminRole, ListedKey, RecordSource};
use stint_types::units::{AccountId, Holder, Timestamp};

/// An answer that no cache keeps.
pub(super) fn page(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}

pub(super) fn key(key: &ListedKey, now: Timestamp) -> Value {
    let path = key.terms.account.as_str();
    let (parent, name) = path.rsplit_once('/').map_or((None, path), |(parent, name)| (Some(parent), name));
    json!({
        "object": "key",
        "id": key.id,
        "name": name,
        "account": parent,
        "path": path,
        "state": key.state(now),
        "source": source(key.source),
        "models": key.access.models,
        "routes": key.access.routes,
        "admin": key.access.role == Some(AdminRole::All),
        "role": key.access.role,
        "priority": key.priority.as_str(),
        "created_at": key.created,
        "expires_at": key.expires,
        "revoked_at": key.revoked,
        "old_secret_until": key.old_until.filter(|until| *until > now && key.revoked.is_none()),
        "limits": key.terms.limits,
        "time_zone": key.terms.zone.name(),
        "warn_at": key.terms.warn_at.get(),
    })
}

pub(super) fn account(terms: &AccountTerms, from: RecordSource, standing: Option<&[LimitStatus]>) -> Value {
    json!({
        "object": "account",
        "path": terms.account.as_str(),
        "source": source(from),
        "limits": terms.limits,
        "time_zone": terms.zone.name(),
        "warn_at": terms.warn_at.get(),
        "standing": standing.map(|lines| lines.iter().map(|line| pages::limit(&of(line, &terms.account))).collect::<Vec<_>>()),
    })
}

/// What would be a key's own, seen from a key, is this account's.
fn of(line: &LimitStatus, account: &AccountId) -> LimitStatus {
    let mut line = line.clone();
    if line.limit.holder == Holder::Key {
        line.limit.holder = Holder::Account(account.clone());
    }
    line
}

/// Those of the accounts above it are in it: they hold for it too.
pub(super) fn standing(lines: Option<&[LimitStatus]>) -> Value {
    json!(lines.map(|lines| lines.iter().map(pages::limit).collect::<Vec<_>>()))
}

fn source(source: RecordSource) -> &'static str {
    match source {
        RecordSource::Configuration => "configuration",
        RecordSource::Store => "store",
    }
}
