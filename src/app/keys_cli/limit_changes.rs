//! What becomes of a key's limits where others are stated, from the JSON of the admin API.

use serde_json::Value;

/// The limits that there were, with these in place of those of their kind.
pub(super) fn added(before: &Value, stated: &Value) -> Vec<Value> {
    let unchanged = items(before).filter(|limit| !has_kind(stated, limit));
    unchanged.chain(items(stated)).cloned().collect()
}

/// The limits that there were and whose kind there is no more.
pub(super) fn removed(before: &Value, after: &Value) -> Vec<Value> {
    items(before).filter(|limit| !has_kind(after, limit)).cloned().collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn has_kind(list: &Value, limit: &Value) -> bool {
    items(list).any(|other| kind(other) == kind(limit))
}

/// All of a limit but how much it allows, which is its first member.
fn kind(limit: &Value) -> Vec<(&str, &str)> {
    let members = limit.as_object().into_iter().flatten().enumerate();
    let mut kind: Vec<_> = members
        .map(|(place, (word, value))| {
            (&**word, if place == 0 { "" } else { value.as_str().unwrap_or_default() })
        })
        .collect();
    kind.sort_unstable();
    kind
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_takes_the_place_of_that_of_its_kind_alone() {
        let before = json!([
            { "money": "20", "per": "month" },
            { "money": "1", "per": "day", "model": "m" },
            { "requests": 60, "per": "minute" },
            { "concurrency": 8 },
        ]);
        let stated = json!([{ "money": "50", "per": "month" }, { "concurrency": 2 }]);
        let kept = [before[1].clone(), before[2].clone()];
        assert_eq!(removed(&before, &stated), kept);
        assert_eq!(added(&before, &stated), [&kept[..], stated.as_array().unwrap()].concat());
        assert!(removed(&before, &json!(added(&before, &stated))).is_empty());
        assert_eq!(removed(&before, &json!([])).len(), 4);
    }
}
