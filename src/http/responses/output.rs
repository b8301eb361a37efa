//! What comes out: items, and how they look.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::chat::{Signed, ToolCallDelta};
use crate::http::signed;

use super::arguments;
use super::offer::{Form, Kind, Kinds};

/// Where thoughts are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Thoughts {
    /// Nowhere; they are kept all the same where the response is.
    #[default]
    Hidden,
    /// As the text of the reasoning.
    Content,
    /// As its summary, which is what many clients show.
    Summary,
}

/// How an answer is to look.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    pub(super) thoughts: Thoughts,
    /// What calls of the tools are told as.
    pub(super) kinds: Arc<Kinds>,
}

impl Look {
    /// What a call is told as; one of a tool that nobody offered is a function's.
    pub(super) fn kind(&self, call: &ToolCallDelta) -> Kind {
        let name = call.name.clone().unwrap_or_default();
        self.kinds.get(&name).cloned().unwrap_or_else(|| Kind { name, ..Kind::default() })
    }
}

/// An item, and whether its caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) value: Value,
    pub(super) shown: bool,
}

/// The items that a caller sees.
pub(super) fn shown(items: &[Item]) -> Vec<Value> {
    items.iter().filter(|item| item.shown).map(|item| item.value.clone()).collect()
}

/// A thought, with what its provider signed of it.
pub(super) fn reasoning(id: &str, text: &str, thoughts: Thoughts, signed: Option<&Signed>) -> Value {
    let told = |kind| if text.is_empty() { json!([]) } else { json!([{ "type": kind, "text": text }]) };
    let (summary, content) = match thoughts {
        Thoughts::Summary => (told("summary_text"), json!([])),
        Thoughts::Content | Thoughts::Hidden => (json!([]), told("reasoning_text")),
    };
    json!({
        "id": id, "type": "reasoning", "status": "completed", "summary": summary, "content": content,
        "encrypted_content": signed.map(signed::sealed),
    })
}

/// What is said.
pub(super) fn message(id: &str, text: &str) -> Value {
    json!({ "id": id, "type": "message", "role": "assistant", "status": "completed", "content": [text_part(text)] })
}

/// The one part of what is said.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// A call of one of the caller's tools.
pub(super) fn call(id: &str, call: &ToolCallDelta, kind: &Kind) -> Value {
    let call_id = call.id.as_deref().unwrap_or_default();
    let mut item = json!({ "id": id, "status": "completed", "call_id": call_id });
    if kind.form == Form::Search {
        item["type"] = "tool_search_call".into();
        item["execution"] = "client".into();
        item["arguments"] = arguments::searched(&call.arguments);
        return item;
    }
    item["name"] = kind.name.clone().into();
    if let Some(space) = &kind.space {
        item["namespace"] = space.clone().into();
    }
    if kind.form == Form::Custom {
        item["type"] = "custom_tool_call".into();
        item["input"] = arguments::input(&call.arguments).into();
    } else {
        item["type"] = "function_call".into();
        item["arguments"] = call.arguments.clone().into();
    }
    item
}
