//! Reads the end user and the tag of a request, which limits can refer to.

use std::sync::Arc;

use serde_json::{Map, Value};

use stint_ledger::RequestScope;

/// How many bytes of the name of a user or a tag count.
const NAME_MAX: usize = 256;

/// The end user is OpenAI's `safety_identifier`, or `user` as it was called before; the tag is `metadata.tag`.
pub(crate) fn of(extra: &Map<String, Value>) -> RequestScope {
    let user = ["safety_identifier", "user"].into_iter().find_map(|name| extra.get(name));
    let tag = extra.get("metadata").and_then(|metadata| metadata.get("tag"));
    RequestScope { user: user.and_then(name), tag: tag.and_then(name), ..RequestScope::default() }
}

/// Any value but `null` counts as a name; otherwise a caller could evade its limits.
fn name(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(clipped(text)),
        other => Some(clipped(&other.to_string())),
    }
}

/// PostgreSQL stores no zero bytes, so names do not differ by them.
fn clipped(text: &str) -> Arc<str> {
    text[..text.floor_char_boundary(NAME_MAX)].replace('\0', "\u{fffd}").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(extra: &Value, user: Option<&str>, tag: Option<&str>) {
        let about = of(extra.as_object().unwrap());
        assert_eq!((about.user.as_deref(), about.tag.as_deref()), (user, tag), "{extra}");
    }

    #[test]
    fn users_and_tags_have_openais_names() {
        check(&json!({}), None, None);
        check(&json!({"user": "u1", "metadata": {"tag": "batch", "other": "x"}}), Some("u1"), Some("batch"));
        check(&json!({"user": "old", "safety_identifier": "new"}), Some("new"), None);
        check(&json!({"user": 7, "metadata": null}), Some("7"), None);
        check(&json!({"user": "a\0"}), Some("a\u{fffd}"), None);
        let long = "ü".repeat(200);
        check(&json!({"user": long}), Some(&"ü".repeat(128)), None);
    }
}
