//! One item that a caller put in.

use serde_json::{Value, json};

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
