//! `GET /admin/audit`: what admins changed, the newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use crate::http::error::ApiError;
use stint_types::tenant::{AuditEntry, AuditRecord};
use stint_types::units::Timestamp;

use super::access::Admin;
use super::query::{PageQuery, QueryParams};
use super::show::page;
use super::state::AdminState;

/// With `after`, those before the last of another page.
pub(super) async fn list(
    State(admin): State<Arc<AdminState>>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let span = PageQuery::read(asked, &["after", "limit"])?;
    let cursor = |after: &str| {
        after
            .parse::<u64>()
            .map_err(|_| ApiError::invalid(Some("after"), "must be the `next` of another page"))
    };
    let before = span.after.as_deref().map(cursor).transpose()?;
    let most = span.page_size();
    let mut records = admin.directory.audit_records(before, most.saturating_add(1)).await?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let has_more = records.len() > most;
    records.truncate(most);
    let next = records.last().filter(|_| has_more).map(|record| record.number.to_string());
    let data: Vec<Value> = records.iter().map(shown).collect();
    Ok(page(&json!({ "object": "list", "data": data, "next": next })))
}

/// Notes a change of something else than keys and accounts, before it is made: what is not noted is not done.
pub(super) async fn note(
    state: &AdminState,
    admin: &Admin,
    action: &str,
    subject: String,
    after: Option<Value>,
) -> Result<(), ApiError> {
    let entry = AuditEntry {
        at: Timestamp::now(),
        who: admin.name.to_string(),
        action: action.to_owned(),
        subject,
        before: None,
        after: after.map(|value| value.to_string()),
    };
    Ok(state.directory.audit(entry).await?)
}

fn shown(record: &AuditRecord) -> Value {
    let AuditRecord { number, entry, hash } = record;
    let value =
        |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let hex: String = hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "object": "change",
        "number": number,
        "at": entry.at,
        "who": entry.who,
        "action": entry.action,
        "subject": entry.subject,
        "before": value(&entry.before),
        "after": value(&entry.after),
        "hash": hex,
    })
}
