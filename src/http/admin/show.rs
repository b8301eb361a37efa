//! Keys and accounts as JSON. No secret and no hash of one is ever in it.

use serde_json::{Value, json};

use crate::http::pages;
use crate::ledger::Line;
use crate::tenant::{Listed, Source, Terms};
use crate::units::{AccountId, Holder, Timestamp};

pub(super) fn key(key: &Listed, now: Timestamp) -> Value {
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
        "admin": key.access.admin,
        "priority": key.priority.word(),
        "created_at": key.created,
        "expires_at": key.expires,
        "revoked_at": key.revoked,
        "old_secret_until": key.old_until.filter(|until| *until > now && key.revoked.is_none()),
        "limits": key.terms.limits,
        "time_zone": key.terms.zone.name(),
        "warn_at": key.terms.warn_at.get(),
    })
}

pub(super) fn account(terms: &Terms, from: Source, standing: Option<&[Line]>) -> Value {
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
fn of(line: &Line, account: &AccountId) -> Line {
    let mut line = line.clone();
    if line.limit.holder == Holder::Key {
        line.limit.holder = Holder::Account(account.clone());
    }
    line
}

/// Those of the accounts above it are in it: they hold for it too.
pub(super) fn standing(lines: Option<&[Line]>) -> Value {
    json!(lines.map(|lines| lines.iter().map(pages::limit).collect::<Vec<_>>()))
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Configuration => "configuration",
        Source::Store => "store",
    }
}
