//! What a request is about, as far as limits care.

use std::sync::Arc;

use serde_json::{Map, Value};

use stint_ledger::RequestScope;

/// The longest name of a user or a tag that is told from others, in bytes.
const NAME_MAX: usize = 256;

/// The end user is OpenAI's `safety_identifier`, or `user` as it was called before; the tag is `metadata.tag`.
pub(crate) fn of(extra: &Map<String, Value>) -> RequestScope {
    let user = ["safety_identifier", "user"].into_iter().find_map(|name| extra.get(name));
    let tag = extra.get("metadata").and_then(|metadata| metadata.get("tag"));
    RequestScope { user: user.and_then(name), tag: tag.and_then(name), ..RequestScope::default() }
}

/// Whatever stands there names somebody, or limits could be got round.
fn name(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(clipped(text)),
        other => Some(clipped(&other.to_string())),
    }
}

/// A zero is what PostgreSQL keeps of no name, so nobody is told from another by it.
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
