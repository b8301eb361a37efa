//! Items as a caller put them in and as a store gives them back, without what they mean.

use serde_json::{Value, json};

use stint_sessions::agent::stored::StoredResponse;

/// The item in its full form, where a caller wrote it shorter.
pub(super) fn normalized(mut item: Value) -> Value {
    if item["type"].is_null() {
        item["type"] = "message".into();
    }
    let (is_message, is_own) = (item["type"] == "message", item["role"] == "assistant");
    if is_message && let Some(text) = item["content"].as_str() {
        let kind = if is_own { "output_text" } else { "input_text" };
        item["content"] = json!([{ "type": kind, "text": text }]);
    }
    if is_message && item["status"].is_null() {
        item["status"] = "completed".into();
    }
    item
}

/// The items of a stored list.
pub(super) fn parse_items(list: &str) -> Vec<Value> {
    serde_json::from_str(list).unwrap_or_default()
}

/// The input items of a stored response, each with an id and in its full form.
pub(super) fn input_with_ids(stored: &StoredResponse) -> Vec<Value> {
    let hex = stored.id.to_string().replacen("req_", "", 1);
    let named = |(at, item): (usize, Value)| {
        let mut item = normalized(item);
        if item["id"].is_null() {
            item["id"] = format!("in_{hex}_{at}").into();
        }
        item
    };
    parse_items(&stored.input).into_iter().enumerate().map(named).collect()
}
