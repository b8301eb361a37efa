//! How a conversation's turns are told to a chat template. Templates agree on most of it, and a template says of none of the rest
//! what it wants: it fails, or writes a prompt that no model has learnt. So each is tried once, with a tool that was called.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use stint_types::chat::{ContentPart, Message, Request, Role, Tool, ToolCall};

/// What a template wants of a turn in which tools are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TurnStyle {
    arguments: ArgumentsStyle,
    /// Whether a turn that says nothing beside its calls has an empty text, and not none.
    empty_text: bool,
    ids: CallIdStyle,
}

/// How the arguments of a call are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ArgumentsStyle {
    /// As values, which the template writes as JSON.
    #[default]
    Values,
    /// As JSON, which the template writes as it is: `DeepSeek`'s.
    Text,
}

/// What calls are named by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CallIdStyle {
    /// As the conversation has them.
    #[default]
    Given,
    /// By nine letters and digits: some of Mistral's refuse any other.
    Nine,
}

/// What the trial's tool was called with. No template has it of itself.
pub(super) const TRIAL_ARGUMENT: &str = "stint_trial_argument";

/// A conversation in which a tool was called.
pub(super) fn trial() -> Request {
    let arguments = json!({ TRIAL_ARGUMENT: 1 }).to_string();
    let id = "call_trial_0".to_owned();
    let call = ToolCall { id: id.clone(), name: "trial".to_owned(), arguments };
    let called = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") };
    let result = Message { tool_call_id: Some(id), ..Message::text(Role::Tool, "1") };
    let function =
        json!({"name": "trial", "description": "", "parameters": {"type": "object", "properties": {}}});
    let tool = Tool::new("trial", json!({"type": "function", "function": function}));
    let conversation = vec![Message::text(Role::User, "Hello"), called, result];
    Request { tools: vec![tool], ..Request::new("", conversation) }
}

impl TurnStyle {
    /// For templates that know no calls.
    pub(super) const FALLBACK: TurnStyle =
        TurnStyle { arguments: ArgumentsStyle::Values, empty_text: true, ids: CallIdStyle::Given };

    /// The same with an empty text for none.
    pub(super) fn with_empty_text(self) -> TurnStyle {
        TurnStyle { empty_text: true, ..self }
    }

    /// All there are, those that Hugging Face's own code would choose first.
    pub(super) fn all() -> impl Iterator<Item = TurnStyle> {
        let ids = [CallIdStyle::Given, CallIdStyle::Nine];
        let of_ids = |ids| {
            [ArgumentsStyle::Values, ArgumentsStyle::Text].into_iter().flat_map(move |arguments| {
                [false, true].map(|empty_text| TurnStyle { arguments, empty_text, ids })
            })
        };
        ids.into_iter().flat_map(of_ids)
    }

    /// Messages as Hugging Face's templates know them.
    pub(super) fn messages(self, messages: &[Message]) -> Value {
        let mut called: HashMap<&str, &str> = HashMap::new();
        let mut turns = Vec::with_capacity(messages.len());
        for message in messages {
            turns.push(self.message(message, &called));
            // Of calls with one id the first of the latest turn counts.
            called.extend(message.tool_calls.iter().rev().map(|call| (call.id.as_str(), call.name.as_str())));
        }
        Value::Array(turns)
    }

    /// `called` has the name of each call before it, by its id: callers give a result's id alone, and some templates want the name.
    fn message(self, message: &Message, called: &HashMap<&str, &str>) -> Value {
        let name = || called.get(message.tool_call_id.as_deref()?).copied();
        let mut turn = Map::new();
        turn.insert("role".to_owned(), json!(message.role.as_str()));
        turn.insert("content".to_owned(), self.content(message));
        let call_id = message.tool_call_id.as_deref().map(|id| self.id(id));
        let texts = [
            ("reasoning_content", message.thought.as_deref()),
            ("tool_call_id", call_id.as_deref()),
            ("name", message.name.as_deref().or_else(name)),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                turn.insert(name.to_owned(), json!(text));
            }
        }
        if !message.tool_calls.is_empty() {
            turn.insert(
                "tool_calls".to_owned(),
                message.tool_calls.iter().map(|call| self.call(call)).collect(),
            );
        }
        Value::Object(turn)
    }

    fn call(self, call: &ToolCall) -> Value {
        let text = || json!(call.arguments);
        let arguments = match self.arguments {
            // The template writes them as JSON itself; text would be quoted twice.
            ArgumentsStyle::Values => serde_json::from_str(&call.arguments).unwrap_or_else(|_| text()),
            ArgumentsStyle::Text => text(),
        };
        let function = json!({"name": call.name, "arguments": arguments});
        json!({"id": self.id(&call.id), "type": "function", "function": function})
    }

    fn content(self, message: &Message) -> Value {
        let content = content(&message.content);
        let says_nothing = !message.tool_calls.is_empty() && content == "";
        if says_nothing && !self.empty_text { Value::Null } else { content }
    }

    fn id(self, id: &str) -> Cow<'_, str> {
        match self.ids {
            CallIdStyle::Nine if !is_nine(id) => nine(id).into(),
            _ => id.into(),
        }
    }
}

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Nine letters and digits, the same for the same id.
fn nine(id: &str) -> String {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let mut letter = || {
        let digit = u32::try_from(rest % 36).unwrap_or(0);
        rest /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..9).map(|_| letter()).collect()
}

/// Plain text as text. Where there is more, neighbouring texts are joined, so that no control token can be
/// spelled across two of them.
fn content(parts: &[ContentPart]) -> Value {
    let mut joined: Vec<Value> = Vec::new();
    let mut text = String::new();
    for part in parts {
        match part {
            ContentPart::Text(more) => text.push_str(more),
            ContentPart::Other(value) => {
                flush(&mut text, &mut joined);
                joined.push(value.clone());
            }
            ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => {}
        }
    }
    if joined.is_empty() {
        return json!(text);
    }
    flush(&mut text, &mut joined);
    Value::Array(joined)
}

fn flush(text: &mut String, parts: &mut Vec<Value>) {
    if !text.is_empty() {
        parts.push(json!({"type": "text", "text": std::mem::take(text)}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_other_names_get_nine_letters_and_keep_them() {
        let style = TurnStyle { ids: CallIdStyle::Nine, ..TurnStyle::default() };
        let (one, other) = (style.id("call_7_0"), style.id("call_7_1"));
        assert!(is_nine(&one) && is_nine(&other) && one != other, "{one} {other}");
        assert_eq!(style.id("call_7_0"), one);
        assert_eq!(style.id("k3J9x2Qa1"), "k3J9x2Qa1");
        assert_eq!(TurnStyle::default().id("call_7_0"), "call_7_0");
    }
}
