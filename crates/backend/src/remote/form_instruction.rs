//! Asks for the form of an answer in words, for models that cannot be held to it.

use std::sync::Arc;

use serde_json::Value;

use crate::BackendCall;
use stint_types::chat::{ContentPart, Message, Request, Role};

/// What asks for a JSON object.
pub(super) fn json() -> String {
    "Answer with one JSON object and nothing else: no words before or after it, and no Markdown fence around it.".to_owned()
}

/// What asks for JSON that fits a schema.
pub(super) fn schema(schema: &Value) -> String {
    format!(
        "Answer with JSON that fits this JSON schema and nothing else: no words before or after it, and no Markdown fence around \
         it.\n\n{schema}"
    )
}

/// The same call with these words behind its instructions.
pub(super) fn instructed(call: &BackendCall, words: String) -> BackendCall {
    let mut request = (*call.request).clone();
    add(&mut request, words);
    BackendCall { request: Arc::new(request), ..call.clone() }
}

fn add(request: &mut Request, words: String) {
    let begun = request.messages.iter().take_while(|message| message.role == Role::System).count();
    match begun.checked_sub(1) {
        Some(last) => {
            let content = &mut request.messages[last].content;
            let blank = if content.is_empty() { "" } else { "\n\n" };
            content.push(ContentPart::Text(format!("{blank}{words}")));
        }
        None => {
            request.messages.insert(0, Message::text(Role::System, words));
            request.effort_changes.changes.iter_mut().for_each(|change| change.after += 1);
        }
    }
}
