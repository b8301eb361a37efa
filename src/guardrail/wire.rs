//! What a hook is sent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use stint_types::chat::{ContentPart, Message, Request, Tool, ToolCall};
use stint_types::units::AccountId;

use super::chain::JudgedChoice;

/// A request that is to be judged.
pub(super) fn request(account: &AccountId, request: &Request) -> Value {
    let messages: Vec<Value> =
        request.messages.iter().enumerate().map(|(index, one)| message(index, one)).collect();
    let tools: Vec<Value> = request.tools.iter().map(declared).collect();
    json!({
        "stage": "before",
        "account": account,
        "model": request.model,
        "stream": request.streams,
        "messages": messages,
        "tools": tools,
        "tool_choice": request.tool_choice,
        "response_format": request.response_format,
        "stop": request.sampling.stop,
        "other": request.extra.iter().chain(&request.unknown_members).collect::<BTreeMap<_, _>>(),
    })
}

/// A tool with all that a model may read of it.
fn declared(tool: &Tool) -> Value {
    let mut declared = tool.declaration.clone();
    if let (Some(members), Some(Value::Object(more))) = (declared.as_object_mut(), &tool.anthropic_members) {
        members.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    declared
}

/// An answer that is to be judged.
pub(super) fn answer(account: &AccountId, model: &str, choices: &[JudgedChoice]) -> Value {
    let choices = choices.iter().enumerate().map(|(index, choice)| {
        json!({
            "index": index,
            "thought": choice.thought,
            "answer": choice.answer,
            "tool_calls": choice.tool_calls.iter().map(call).collect::<Vec<_>>(),
        })
    });
    json!({
        "stage": "after",
        "account": account,
        "model": model,
        "choices": choices.collect::<Vec<_>>(),
    })
}

fn message(index: usize, message: &Message) -> Value {
    let others = message.content.iter().filter_map(|part| match part {
        ContentPart::Other(value) => Some(value),
        ContentPart::Text(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => None,
    });
    let mut judged = json!({
        "index": index,
        "role": message.role.as_str(),
        "name": message.name,
        "content": message.paragraphs(),
        "parts": others.collect::<Vec<_>>(),
        "thought": message.thought,
        "tool_calls": message.tool_calls.iter().map(call).collect::<Vec<_>>(),
        "tool_call_id": message.tool_call_id,
    });
    // Not every provider checks its signature: a model may read what a caller wrote there.
    if !message.signed.is_empty() {
        judged["signed"] = message.signed.iter().map(|signed| &*signed.block).collect();
    }
    if !message.unknown_members.is_empty() {
        judged["other"] = Value::Object(message.unknown_members.clone());
    }
    judged
}

fn call(call: &ToolCall) -> Value {
    json!({ "id": call.id, "name": call.name, "arguments": call.arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::{Role, SignedThought, SigningDomain, ThoughtSigner};

    #[test]
    fn texts_that_stand_apart_are_judged_apart() {
        let texts = ["x1", "123-45-6789", "9y"].map(|text| ContentPart::Text(text.to_owned()));
        let turn = Message { content: texts.into(), ..Message::text(Role::User, "") };
        assert_eq!(message(0, &turn)["content"], "x1\n\n123-45-6789\n\n9y");
    }

    #[test]
    fn what_comes_back_as_signed_is_judged_too() {
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain(7) };
        let block = r#"{"type":"reasoning.text","text":"My name is Bob"}"#;
        let turn = Message {
            signed: vec![SignedThought { signer, block: block.into() }],
            ..Message::text(Role::Assistant, "")
        };
        assert_eq!(message(0, &turn)["signed"], json!([block]));
        assert!(message(0, &Message::text(Role::User, "")).get("signed").is_none());
    }
}
