//! Reads the end user and the tag of a request, which limits can refer to.

use std::sync::Arc;

use serde_json::{Map, Value};

use stint_ledger::RequestScope;
use stint_types::units::Facet;

/// How many bytes of the name of a user or a tag count.
const NAME_MAX: usize = 256;

/// The end user is OpenAI's `safety_identifier`, or `user` as it was called before; the tag is `metadata.tag`.
pub(crate) fn of(extra: &Map<String, Value>) -> RequestScope {
    let user = ["safety_identifier", "user"].into_iter().find_map(|name| extra.get(name));
    let tag = extra.get("metadata").and_then(|metadata| metadata.get("tag"));
    RequestScope { user: user.and_then(name), tag: tag.and_then(name), ..RequestScope::default() }
}

/// True if a limit of its statement is about such a request: a statement has all models and tags, and one user. As long as no model
/// is chosen it may be any.
pub(crate) fn is_under(about: &RequestScope, facet: &Facet) -> bool {
    match facet {
        Facet::Model(name) => about.model.as_ref().is_none_or(|model| model == name),
        Facet::Tag(name) => about.tag.as_ref() == Some(name),
        Facet::Whole | Facet::User(_) | Facet::Episode(_) | Facet::Tool(..) => true,
    }
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
    fn limits_on_other_models_and_tags_are_not_about_a_request() {
        let about =
            RequestScope { model: Some("m".into()), ..of(json!({ "user": "u" }).as_object().unwrap()) };
        for (facet, expected) in [
            (Facet::Whole, true),
            (Facet::Model("m".into()), true),
            (Facet::Model("n".into()), false),
            (Facet::Tag("batch".into()), false),
            (Facet::User("u".into()), true),
        ] {
            assert_eq!(is_under(&about, &facet), expected, "{facet:?}");
        }
        assert!(is_under(&RequestScope::default(), &Facet::Model("n".into())));
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
