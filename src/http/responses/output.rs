//! The output items of a response, and how thoughts and calls look in them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::http::signed;
use stint_types::chat::{SignedThought, ToolCallDelta};

use super::arguments;
use super::tool_set::{OmittedTools, ToolCallForm, ToolIdentities, ToolIdentity};

/// Where thoughts are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ResponsesThoughts {
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
pub(super) struct ResponsesRenderOptions {
    pub(super) thoughts: ResponsesThoughts,
    /// What calls of the tools are shown as.
    pub(super) tools: Arc<ToolIdentities>,
    /// True if the answer is the summary of a compaction.
    pub(super) is_compaction: bool,
    /// The tools that were left out.
    pub(super) omitted: Arc<OmittedTools>,
}

impl ResponsesRenderOptions {
    /// What a call is shown as; one of a tool that nobody offered is a function's.
    pub(super) fn tool_identity(&self, call: &ToolCallDelta) -> ToolIdentity {
        let name = call.name.clone().unwrap_or_default();
        self.tools.get(&name).cloned().unwrap_or_else(|| ToolIdentity { name, ..ToolIdentity::default() })
    }
}

/// An item, and whether its caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OutputItem {
    pub(super) value: Value,
    pub(super) is_visible: bool,
}

/// The items that a caller sees.
pub(super) fn visible_items(items: &[OutputItem]) -> Vec<Value> {
    items.iter().filter(|item| item.is_visible).map(|item| item.value.clone()).collect()
}

/// A thought, with what its provider signed of it.
pub(super) fn reasoning(
    id: &str,
    text: &str,
    thoughts: ResponsesThoughts,
    signed: Option<&SignedThought>,
) -> Value {
    let texts = |kind| if text.is_empty() { json!([]) } else { json!([{ "type": kind, "text": text }]) };
    let (summary, content) = match thoughts {
        ResponsesThoughts::Summary => (texts("summary_text"), json!([])),
        ResponsesThoughts::Content | ResponsesThoughts::Hidden => (json!([]), texts("reasoning_text")),
    };
    let mut item = json!({
        "id": id, "type": "reasoning", "status": "completed", "summary": summary, "content": content,
    });
    if let Some(signed) = signed {
        item["encrypted_content"] = signed::seal(signed).into();
    }
    item
}

/// A call of one of the caller's tools.
pub(super) fn call(id: &str, call: &ToolCallDelta, kind: &ToolIdentity) -> Value {
    let call_id = call.id.as_deref().unwrap_or_default();
    let mut item = json!({ "id": id, "status": "completed", "call_id": call_id });
    if kind.form == ToolCallForm::Search {
        item["type"] = "tool_search_call".into();
        item["execution"] = "client".into();
        item["arguments"] = arguments::search_arguments(&call.arguments);
        return item;
    }
    item["name"] = kind.name.clone().into();
    if let Some(space) = &kind.namespace {
        item["namespace"] = space.clone().into();
    }
    if kind.form == ToolCallForm::Custom {
        item["type"] = "custom_tool_call".into();
        item["input"] = arguments::unwrap_input(&call.arguments).into();
    } else {
        item["type"] = "function_call".into();
        item["arguments"] = call.arguments.clone().into();
    }
    item
}
