//! Compaction: a model puts a conversation into words of its own, and its caller hands those back in place of all that came
//! before them. The words lie in an item that says nothing to others, as OpenAI's do; nobody else's can be read here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::http::error::ApiError;

use super::item::normalized;

/// What a caller asks for it by at the end of its input.
pub(super) const TRIGGER: &str = "compaction_trigger";

/// What the model is asked, as the last of the conversation.
pub(super) const QUESTION: &str = "The conversation up to here is about to be replaced by a summary that you write now, and you will go on from \
     that alone. Write down all that you need for it: what was asked for and what was said about how to do it, what was decided and \
     why, what was done and found out (with names, paths, commands, numbers and ids as they are), what failed, and what is left to \
     do. Write the summary and nothing else, and call no tools.";

/// What a model reads before the summary.
const PREFACE: &str = "What came before was replaced by this summary, which you wrote:\n\n";

/// What is in an item.
#[derive(Debug, Serialize, Deserialize)]
struct SealedSummary {
    stint_compaction: String,
}

/// The item of a summary.
pub(super) fn item(id: &str, summary: &str) -> Value {
    let sealed = json!(SealedSummary { stint_compaction: summary.to_owned() }).to_string();
    json!({ "id": id, "type": "compaction", "encrypted_content": sealed })
}

/// What a model reads of such an item; nothing where it is not one of ours.
pub(super) fn unseal(sealed: &str) -> Option<String> {
    let SealedSummary { stint_compaction } = serde_json::from_str(sealed).ok()?;
    Some(format!("{PREFACE}{stint_compaction}"))
}

/// True for an item with which its caller asks for a compaction.
pub(super) fn is_trigger(item: &Value) -> bool {
    item["type"] == TRIGGER
}

/// True for an item that stands for all before it.
pub(super) fn is_compaction(item: &Value) -> bool {
    item["type"] == "compaction"
}

/// What is left of a conversation once it is compacted: all that users said, and what stands behind the last compaction.
pub(super) fn remaining(mut items: Vec<Value>) -> Vec<Value> {
    let Some(last) = items.iter().rposition(is_compaction) else { return items };
    let behind = items.split_off(last);
    items.retain(is_users);
    items.extend(behind);
    items
}

/// What users said, as items with ids of their own.
pub(super) fn users_items(items: &[Value], hex: &str) -> Vec<Value> {
    let from_users = items.iter().filter(|item| is_users(item)).enumerate();
    let named = from_users.map(|(at, item)| {
        let mut item = normalized(item.clone());
        if item["id"].is_null() {
            item["id"] = format!("msg_{hex}_in{at}").into();
        }
        item
    });
    named.collect()
}

fn is_users(item: &Value) -> bool {
    item["role"] == "user"
}

/// The body of a request for nothing but a compaction: it may have no input, and is answered at once.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn check_body(members: &mut Map<String, Value>) -> Result<(), ApiError> {
    for (param, why) in [
        ("stream", "is not offered: a compaction is one object"),
        ("conversation", "is not offered: send the items, or previous_response_id"),
        ("max_output_tokens", "is not offered: a summary that is cut off loses the rest of the conversation"),
    ] {
        let says_something = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        if members.shift_remove(param).is_some_and(|value| says_something(&value)) {
            return Err(ApiError::invalid(Some(param), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_by_models_and_by_nobody_else() {
        let item = item("cmp_1", "Two \"files\" are left.");
        assert_eq!(item["type"], "compaction");
        let read = unseal(item["encrypted_content"].as_str().unwrap()).unwrap();
        assert!(read.ends_with("\n\nTwo \"files\" are left."), "{read}");
        assert_eq!(unseal("gAAAAABo"), None, "another's cannot be read");
    }

    #[test]
    fn a_compaction_leaves_what_users_said_and_what_came_later() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let own = json!({ "role": "assistant", "content": "yes" });
        let cut = item("cmp_1", "all");
        let all = vec![user("a"), own.clone(), user("b"), cut.clone(), own.clone()];
        assert_eq!(remaining(all), [user("a"), user("b"), cut, own.clone()]);
        assert_eq!(remaining(vec![own.clone()]), [own]);
        let kept = users_items(&[user("a")], "01");
        assert_eq!((&kept[0]["id"], &kept[0]["status"]), (&json!("msg_01_in0"), &json!("completed")));
    }
}
