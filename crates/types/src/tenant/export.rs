//! Keys and accounts as the configuration writes them, with hashes only.

use std::fmt::{Display, Write};

use serde_json::Value;

use crate::units::{AccountId, Priority, Zone};

use super::{AccountTerms, AdminRole, DirectorySnapshot, ListedKey, Percent, TenantLimit};

/// Everything in force, as `[[account]]` and `[[key]]`. What was revoked is left out, and so is the old secret of a key
/// that was rotated, though its grace may not be over.
pub fn to_toml(snapshot: &DirectorySnapshot) -> String {
    let keys: Vec<ListedKey> =
        snapshot.keys().into_iter().filter(|key| key.revoked.is_none() && !key.shadowed).collect();
    let mut text =
        "# Keys and accounts as they were exported: hashes, which are no use as keys.\n".to_owned();
    for terms in snapshot.terms() {
        let of_key = keys.iter().any(|key| key.terms.account == terms.account);
        if !of_key && terms != AccountTerms::unlimited(terms.account.clone()) {
            text.push_str("\n[[account]]\n");
            line(&mut text, "name", quoted(terms.account.as_str()));
            terms_lines(&mut text, &terms);
        }
    }
    for key in &keys {
        text.push_str("\n[[key]]\n");
        key_lines(&mut text, key);
    }
    text
}

fn key_lines(text: &mut String, key: &ListedKey) {
    let account = &key.terms.account;
    line(text, "name", quoted(account.name()));
    if let Some(parent) = parent(account) {
        line(text, "account", quoted(parent));
    }
    let hash = quoted(&key.hash.to_string());
    line(
        text,
        "hash",
        match key.second {
            Some(second) => format!("[{hash}, {}]", quoted(&second.to_string())),
            None => hash,
        },
    );
    for (word, names) in [("models", &key.access.models), ("routes", &key.access.routes)] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            line(text, word, format!("[{}]", names.join(", ")));
        }
    }
    match key.access.role {
        // The older word, which earlier versions know.
        Some(AdminRole::All) => line(text, "admin", "true"),
        Some(role) => line(text, "role", quoted(role.as_str())),
        None => {}
    }
    if key.priority != Priority::default() {
        line(text, "priority", quoted(key.priority.as_str()));
    }
    if let Some(expires) = key.expires {
        line(text, "expires_at", quoted(&expires.to_string()));
    }
    terms_lines(text, &key.terms);
}

fn terms_lines(text: &mut String, terms: &AccountTerms) {
    if !terms.limits.is_empty() {
        text.push_str("limits = [\n");
        for limit in &terms.limits {
            line_of(text, limit);
        }
        text.push_str("]\n");
    }
    if terms.zone != Zone::UTC {
        line(text, "time_zone", quoted(terms.zone.name()));
    }
    if terms.warn_at != Percent::default() {
        line(text, "warn_at", terms.warn_at.get());
    }
}

fn line(text: &mut String, word: &str, value: impl Display) {
    // A string takes all that is written to it.
    let _ = writeln!(text, "{word} = {value}");
}

/// A limit in braces, what it limits first.
fn line_of(text: &mut String, limit: &TenantLimit) {
    let words = serde_json::to_value(limit).unwrap_or_default();
    let one = |(word, value): (&String, &Value)| match value {
        Value::String(text) => format!("{word} = {}", quoted(text)),
        other => format!("{word} = {other}"),
    };
    let words: Vec<String> = words.as_object().into_iter().flatten().map(one).collect();
    let _ = writeln!(text, "  {{ {} }},", words.join(", "));
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The path of the account above.
fn parent(account: &AccountId) -> Option<&str> {
    account.as_str().rsplit_once('/').map(|(parent, _)| parent)
}
