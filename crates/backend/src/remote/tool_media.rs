//! Images and files in tools' results, for APIs that take only text there: they move into the user's message behind all results
//! of a turn, each with a line that names its call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use stint_types::chat::{ContentPart, Message, Role};

/// What stands in the result in their place.
const MOVED: &str = "(What else it returned is in the user's message that follows.)";
/// How much of a tool's name is repeated.
const NAME_MAX: usize = 64;

/// The conversation with nothing in its tools' results but text and what stays there.
pub(super) fn moved(messages: &[Message], stays: impl Fn(&Value) -> bool) -> Cow<'_, [Message]> {
    let is_media = |part: &ContentPart| matches!(part, ContentPart::Other(value) if !stays(value));
    let has_media = |message: &&Message| message.content.iter().any(is_media);
    if !messages.iter().filter(|message| message.role == Role::Tool).any(|message| has_media(&message)) {
        return Cow::Borrowed(messages);
    }
    let (mut all, mut media) = (Vec::new(), Vec::new());
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for message in messages {
        names.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str())));
        match message.role {
            Role::Tool if has_media(&message) => {
                let (moved, rest) = message.content.iter().cloned().partition(is_media);
                media.push(ContentPart::Text(origin(message, &names)));
                media.extend(moved);
                all.push(with_text(message, rest));
            }
            Role::Tool => all.push(message.clone()),
            Role::User => {
                let content = media.drain(..).chain(message.content.iter().cloned()).collect();
                all.push(Message { content, ..message.clone() });
            }
            Role::System | Role::Assistant => {
                all.extend(user_message(&mut media));
                all.push(message.clone());
            }
        }
    }
    all.extend(user_message(&mut media));
    Cow::Owned(all)
}

/// A message of the user with what was collected; nothing if that is nothing.
fn user_message(media: &mut Vec<ContentPart>) -> Option<Message> {
    let content = std::mem::take(media);
    (!content.is_empty()).then(|| Message { content, ..Message::text(Role::User, "") })
}

/// Says of which call it is.
fn origin(message: &Message, names: &BTreeMap<&str, &str>) -> String {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let name = names.get(id).copied().or(message.name.as_deref()).unwrap_or("a tool");
    format!("Returned by {} (tool call {id}):", &name[..name.floor_char_boundary(NAME_MAX)])
}

/// A result with the rest of its content, and some words where that has none.
fn with_text(message: &Message, mut content: Vec<ContentPart>) -> Message {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(text) if !text.is_empty());
    if !content.iter().any(is_text) {
        content.push(ContentPart::Text(MOVED.to_owned()));
    }
    Message { content, ..message.clone() }
}
