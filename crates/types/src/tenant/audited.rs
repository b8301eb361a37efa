//! What the audit log says of changes to keys and accounts.

use serde_json::{Value, json};

use crate::units::Timestamp;

use super::{AccountTerms, AuditEntry, DirectorySnapshot, KeyRecord, KeyStoreChange};

impl DirectorySnapshot {
    /// An entry for each of these changes.
    pub(super) fn audit_entries(
        &self,
        changes: &[KeyStoreChange],
        who: &str,
        at: Timestamp,
    ) -> Vec<AuditEntry> {
        let entry = |change: &KeyStoreChange| {
            let (action, subject, before, after) = match change {
                KeyStoreChange::PutKey(key) => {
                    let before = self.stored.keys.get(&key.id);
                    let action = key_action(before, key);
                    (action, &key.account, before.map(key_value), Some(key_value(key)))
                }
                KeyStoreChange::PutTerms(terms) => {
                    let before = self.stored.terms.get(&terms.account);
                    ("account.set", &terms.account, before.map(terms_value), Some(terms_value(terms)))
                }
                KeyStoreChange::RemoveTerms(account) => {
                    ("account.delete", account, self.stored.terms.get(account).map(terms_value), None)
                }
            };
            AuditEntry {
                at,
                who: who.to_owned(),
                action: action.to_owned(),
                subject: subject.to_string(),
                before: before.map(|value| value.to_string()),
                after: after.map(|value| value.to_string()),
            }
        };
        changes.iter().map(entry).collect()
    }
}

fn key_action(before: Option<&KeyRecord>, after: &KeyRecord) -> &'static str {
    match before {
        None => "key.create",
        Some(before) if before.revoked.is_none() && after.revoked.is_some() => "key.revoke",
        Some(before) if before.hash != after.hash => "key.rotate",
        Some(_) => "key.change",
    }
}

fn key_value(key: &KeyRecord) -> Value {
    json!({
        "id": key.id,
        "models": key.access.models,
        "routes": key.access.routes,
        "role": key.access.role,
        "priority": key.priority.as_str(),
        "expires_at": key.expires,
        "revoked_at": key.revoked,
        "old_secret_until": key.retired.last().map(|retired| retired.until),
    })
}

fn terms_value(terms: &AccountTerms) -> Value {
    json!({ "limits": terms.limits, "time_zone": terms.zone.name(), "warn_at": terms.warn_at.get() })
}
