//! Where in a request the first thing is that is no text, in its caller's own words.

use serde_json::Value;

use crate::gateway::Refusal;
use crate::plan;

/// The kinds of parts that are no text, in all dialects.
const KINDS: [&str; 5] = ["image_url", "input_audio", "image", "input_image", "document"];

/// A refusal for want of images, naming the part that is one rather than the whole conversation.
pub(super) fn named(refusal: Refusal, body: &[u8]) -> Refusal {
    match refusal {
        Refusal::Plan(plan::Refusal::MemberNotServed { model, what, member }) if what == "images" => {
            let path = serde_json::from_slice(body).ok().and_then(|body: Value| first(&body));
            let member = path.map_or(member, Into::into);
            Refusal::Plan(plan::Refusal::MemberNotServed { model, what, member })
        }
        other => other,
    }
}

fn first(body: &Value) -> Option<String> {
    ["messages", "input"].into_iter().find_map(|list| below(list, body.get(list)?))
}

/// The first such part of a list of messages, parts, or results with parts of their own.
fn below(path: &str, list: &Value) -> Option<String> {
    list.as_array()?.iter().enumerate().find_map(|(at, item)| {
        let path = format!("{path}[{at}]");
        let is_one = item.get("type").and_then(Value::as_str).is_some_and(|kind| KINDS.contains(&kind));
        if is_one {
            return Some(path);
        }
        ["content", "output"]
            .into_iter()
            .find_map(|inner| below(&format!("{path}.{inner}"), item.get(inner)?))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_part_is_named_as_its_caller_would_in_every_dialect() {
        let text = json!({ "type": "text", "text": "x" });
        let user = json!({ "role": "user", "content": "x" });
        let check = |body: Value, expected: Option<&str>| assert_eq!(first(&body).as_deref(), expected);
        let image = json!({ "role": "user", "content": [text, { "type": "image_url" }] });
        check(json!({ "messages": [user, user, image] }), Some("messages[2].content[1]"));
        let result = json!({ "type": "tool_result", "content": [text, { "type": "image" }] });
        check(json!({ "messages": [{ "content": [result] }] }), Some("messages[0].content[0].content[1]"));
        let item = json!({ "type": "message", "content": [{ "type": "input_image" }] });
        check(json!({ "input": [item] }), Some("input[0].content[0]"));
        check(json!({ "input": "x", "messages": [user] }), None);
    }
}
