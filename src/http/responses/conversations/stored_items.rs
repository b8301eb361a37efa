//! Items as they are stored in a conversation, and as callers and models see them again.

use serde_json::{Value, json};

use crate::http::responses::item::normalized;
use crate::http::responses::output::OutputItem;
use stint_sessions::agent::conversations::StoredItem;
use stint_types::units::RequestId;

/// What marks a thought that its caller does not see. The model is shown it again all the same.
const HIDDEN: &str = "hidden";

/// What a caller puts in. An item has an id of its own there, whatever it was called elsewhere.
pub(in crate::http::responses) fn stored_input(items: &[Value]) -> Vec<StoredItem> {
    let hex = RequestId::new().to_string().replacen("req_", "", 1);
    let named = |(at, item): (usize, &Value)| {
        let mut item = normalized(item.clone());
        item["id"] = format!("{}_{hex}_{at}", prefix(&item)).into();
        stored(&item)
    };
    items.iter().enumerate().map(named).collect()
}

/// The items of an answer.
pub(in crate::http::responses) fn stored_output(items: &[OutputItem]) -> Vec<StoredItem> {
    let marked = |item: &OutputItem| {
        let mut value = item.value.clone();
        if !item.is_visible {
            value[HIDDEN] = true.into();
        }
        stored(&value)
    };
    items.iter().map(marked).collect()
}

/// The item as its caller sees it: of a hidden thought that there was one.
pub(in crate::http::responses) fn visible_item(item: &StoredItem) -> Value {
    let mut value: Value = serde_json::from_str(&item.value).unwrap_or_default();
    if value.as_object_mut().and_then(|members| members.shift_remove(HIDDEN)).is_some() {
        value["content"] = json!([]);
        value["summary"] = json!([]);
    }
    value
}

/// The item as a model is shown it again.
pub(in crate::http::responses) fn model_item(item: &StoredItem) -> Value {
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
        let kept = stored_input(&items);
        let again: Vec<Value> = kept.iter().map(visible_item).collect();
        assert_eq!(again[0]["content"], json!([{ "type": "input_text", "text": "Hello." }]));
        assert_eq!((&again[0]["type"], &again[0]["status"]), (&json!("message"), &json!("completed")));
        let ids: Vec<&str> = again.iter().filter_map(|item| item["id"].as_str()).collect();
        assert_eq!(ids, kept.iter().map(|item| &*item.id).collect::<Vec<_>>());
        let kinds: Vec<&str> = ids.iter().filter_map(|id| id.split('_').next()).collect();
        assert_eq!(kinds, ["msg", "fc", "fco"]);
        assert_ne!(kept, stored_input(&items), "never the same names");
    }

    #[test]
    fn a_hidden_thought_is_shown_to_the_model_alone() {
        let value = json!({ "id": "rs_1", "type": "reasoning", "summary": [],
                            "content": [{ "type": "reasoning_text", "text": "1 2 3" }] });
        let kept = stored_output(&[
            OutputItem { value: value.clone(), is_visible: false },
            OutputItem { value: value.clone(), is_visible: true },
        ]);
        assert_eq!(model_item(&kept[0]), value);
        assert_eq!(
            visible_item(&kept[0]),
            json!({ "id": "rs_1", "type": "reasoning", "summary": [], "content": [] })
        );
        assert_eq!((model_item(&kept[1]), visible_item(&kept[1])), (value.clone(), value));
    }
}
