//! The sources of a text, as Responses have them.

use serde_json::{Map, Value, json};

/// The kinds that there are here: clients take no others.
const KINDS: [&str; 4] = ["url_citation", "file_citation", "container_file_citation", "file_path"];

/// A source in the form of chat completions, which names what is cited by its kind, as Responses have it. Its places count the
/// characters of its own text, which begins behind so many others; one without a place stands at the text's end.
pub(super) fn flat(source: &Value, letters_before: usize, text: &str) -> Option<Value> {
    let kind = source["type"].as_str().filter(|kind| KINDS.contains(kind))?;
    let mut members = Map::new();
    members.insert("type".to_owned(), kind.into());
    members.extend(source[kind].as_object()?.clone());
    if kind == "url_citation" {
        place(&mut members, letters_before, text.chars().count());
        members.entry("title").or_insert_with(|| source[kind]["url"].clone());
    }
    Some(members.into())
}

fn place(members: &mut Map<String, Value>, letters_before: usize, letters: usize) {
    for name in ["start_index", "end_index"] {
        let stated = members.get(name).and_then(Value::as_u64);
        let stated = stated.map(|at| at.saturating_sub(letters_before as u64));
        members.insert(name.to_owned(), json!(stated.unwrap_or(letters as u64)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cited: &Value, expected: Value) {
        let source = json!({ "type": "url_citation", "url_citation": cited });
        assert_eq!(flat(&source, 10, "a text"), Some(expected));
    }

    #[test]
    fn a_source_has_all_that_clients_of_responses_want_of_it() {
        check(
            &json!({ "url": "https://a", "title": "A", "start_index": 12, "end_index": 14 }),
            json!({ "type": "url_citation", "url": "https://a", "title": "A", "start_index": 2, "end_index": 4 }),
        );
        check(
            &json!({ "url": "https://a" }),
            json!({
                "type": "url_citation", "url": "https://a", "title": "https://a", "start_index": 6, "end_index": 6,
            }),
        );
        assert_eq!(flat(&json!({ "type": "file", "file": {} }), 0, ""), None, "no client knows it");
    }
}
