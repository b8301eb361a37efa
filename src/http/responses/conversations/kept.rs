//! Items as they are kept in a conversation, and as they come out of it.

use serde_json::{Value, json};

use crate::agent::conversations::StoredItem;
use crate::http::responses::item::whole;
use crate::http::responses::output::Item;
use crate::units::RequestId;

/// What marks a thought that its caller does not see. The model is shown it again all the same.
const HIDDEN: &str = "hidden";

/// What a caller puts in. An item has an id of its own there, whatever it was called elsewhere.
pub(in crate::http::responses) fn put_in(items: &[Value]) -> Vec<StoredItem> {
    let hex = RequestId::new().to_string().replacen("req_", "", 1);
    let named = |(at, item): (usize, &Value)| {
        let mut item = whole(item.clone());
        item["id"] = format!("{}_{hex}_{at}", prefix(&item)).into();
        stored(&item)
    };
    items.iter().enumerate().map(named).collect()
}

/// What a model said.
pub(in crate::http::responses) fn said(items: &[Item]) -> Vec<StoredItem> {
    let marked = |item: &Item| {
        let mut value = item.value.clone();
        if !item.shown {
            value[HIDDEN] = true.into();
        }
        stored(&value)
    };
    items.iter().map(marked).collect()
}

/// The item as its caller sees it: of a hidden thought that there was one.
pub(in crate::http::responses) fn shown(item: &StoredItem) -> Value {
    let mut value: Value = serde_json::from_str(&item.value).unwrap_or_default();
    if value.as_object_mut().and_then(|members| members.shift_remove(HIDDEN)).is_some() {
        value["content"] = json!([]);
        value["summary"] = json!([]);
    }
    value
}

/// The item as a model is shown it again.
pub(in crate::http::responses) fn recalled(item: &StoredItem) -> Value {
    let mut value: Value = serde_json::from_str(&item.value).unwrap_or_default();
    value.as_object_mut().and_then(|members| members.shift_remove(HIDDEN));
    value
}

fn stored(item: &Value) -> StoredItem {
    StoredItem { id: item["id"].as_str().unwrap_or_default().into(), value: item.to_string().into() }
}

/// What the id of an item begins with, by its kind.
fn prefix(item: &Value) -> &'static str {
    match item["type"].as_str() {
        Some("reasoning") => "rs",
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        Some("custom_tool_call") => "ctc",
        Some("custom_tool_call_output") => "ctco",
        _ => "msg",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_kept_whole_and_under_a_name_of_its_own() {
        let items = [
            json!({ "role": "user", "content": "Hello." }),
            json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}" }),
            json!({ "type": "function_call_output", "call_id": "c", "output": "7" }),
        ];
        let kept = put_in(&items);
        let again: Vec<Value> = kept.iter().map(shown).collect();
        assert_eq!(again[0]["content"], json!([{ "type": "input_text", "text": "Hello." }]));
        assert_eq!((&again[0]["type"], &again[0]["status"]), (&json!("message"), &json!("completed")));
        let ids: Vec<&str> = again.iter().filter_map(|item| item["id"].as_str()).collect();
        assert_eq!(ids, kept.iter().map(|item| &*item.id).collect::<Vec<_>>());
        let kinds: Vec<&str> = ids.iter().filter_map(|id| id.split('_').next()).collect();
        assert_eq!(kinds, ["msg", "fc", "fco"]);
        assert_ne!(kept, put_in(&items), "never the same names");
    }

    #[test]
    fn a_hidden_thought_is_shown_to_the_model_alone() {
        let value = json!({ "id": "rs_1", "type": "reasoning", "summary": [],
                            "content": [{ "type": "reasoning_text", "text": "1 2 3" }] });
        let kept =
            said(&[Item { value: value.clone(), shown: false }, Item { value: value.clone(), shown: true }]);
        assert_eq!(recalled(&kept[0]), value);
        assert_eq!(
            shown(&kept[0]),
            json!({ "id": "rs_1", "type": "reasoning", "summary": [], "content": [] })
        );
        assert_eq!((recalled(&kept[1]), shown(&kept[1])), (value.clone(), value));
    }
}
