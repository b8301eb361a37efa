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
    calls: CallsStyle,
}

/// How many calls a turn has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CallsStyle {
    /// As many as were made at once, and their results behind them.
    #[default]
    Together,
    /// One, with its result behind it: Llama's refuse more.
    Single,
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

/// A conversation in which a tool was called so many times at once.
pub(super) fn trial(calls: usize) -> Request {
    let arguments = json!({ TRIAL_ARGUMENT: 1 }).to_string();
    let ids = || (0..calls).map(|number| format!("call_trial_{number}"));
    let call = |id| ToolCall { id, name: "trial".to_owned(), arguments: arguments.clone() };
    let called = Message { tool_calls: ids().map(call).collect(), ..Message::text(Role::Assistant, "") };
    let results = ids().map(|id| Message { tool_call_id: Some(id), ..Message::text(Role::Tool, "1") });
    let function =
        json!({"name": "trial", "description": "", "parameters": {"type": "object", "properties": {}}});
    let tool = Tool::new("trial", json!({"type": "function", "function": function}));
    let conversation = [Message::text(Role::User, "Hello"), called].into_iter().chain(results).collect();
    Request { tools: vec![tool], ..Request::new("", conversation) }
}

impl TurnStyle {
    /// For templates that know no calls.
    pub(super) const FALLBACK: TurnStyle = TurnStyle {
        arguments: ArgumentsStyle::Values,
        empty_text: true,
        ids: CallIdStyle::Given,
        calls: CallsStyle::Together,
    };

    /// The same with an empty text for none.
    pub(super) fn with_empty_text(self) -> TurnStyle {
        TurnStyle { empty_text: true, ..self }
    }

    /// The same with one call in a turn.
    pub(super) fn with_single_calls(self) -> TurnStyle {
        TurnStyle { calls: CallsStyle::Single, ..self }
    }

    /// All there are for a turn with one call, those that Hugging Face's own code would choose first.
    pub(super) fn all() -> impl Iterator<Item = TurnStyle> {
        let ids = [CallIdStyle::Given, CallIdStyle::Nine];
        let of_ids = |ids| {
            [ArgumentsStyle::Values, ArgumentsStyle::Text].into_iter().flat_map(move |arguments| {
                [false, true].map(|empty_text| TurnStyle {
                    arguments,
                    empty_text,
                    ids,
                    calls: CallsStyle::Together,
                })
            })
        };
        ids.into_iter().flat_map(of_ids)
    }

    /// Messages as Hugging Face's templates know them.
    pub(super) fn messages(self, messages: &[Message]) -> Value {
        let messages: Vec<Cow<'_, Message>> = match self.calls {
            CallsStyle::Together => messages.iter().map(Cow::Borrowed).collect(),
            CallsStyle::Single => single_calls(messages),
        };
        let mut called: HashMap<&str, &str> = HashMap::new();
        let mut turns = Vec::with_capacity(messages.len());
        for message in &messages {
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

/// The same conversation with one call in a turn, and its result behind it.
fn single_calls(messages: &[Message]) -> Vec<Cow<'_, Message>> {
    let mut turns = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        rest = behind;
        if message.tool_calls.len() < 2 {
            turns.push(Cow::Borrowed(message));
            continue;
        }
        let count = behind.iter().take_while(|message| message.role == Role::Tool).count();
        let (results, behind) = behind.split_at(count);
        rest = behind;
        part_turn(message, results, &mut turns);
    }
    turns
}

/// A turn with several calls as one turn for each. What was thought and said stands before the first.
fn part_turn<'a>(message: &'a Message, results: &'a [Message], turns: &mut Vec<Cow<'a, Message>>) {
    let id = |result: &'a Message| result.tool_call_id.as_deref().unwrap_or_default();
    let mut waiting: HashMap<&str, Vec<&'a Message>> = HashMap::new();
    for result in results {
        waiting.entry(id(result)).or_default().push(result);
    }
    for (place, call) in message.tool_calls.iter().enumerate() {
        let tool_calls = vec![call.clone()];
        let turn = match place {
            0 => Message { tool_calls, ..message.clone() },
            _ => Message { tool_calls, ..Message::text(Role::Assistant, "") },
        };
        turns.push(Cow::Owned(turn));
        let answers = waiting.remove(call.id.as_str()).unwrap_or_default();
        turns.extend(answers.into_iter().map(Cow::Borrowed));
    }
    // Results of no call here stay behind them all.
    let others = results.iter().filter(|&result| waiting.contains_key(id(result)));
    turns.extend(others.map(Cow::Borrowed));
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
/// spelled across two of them. They are paragraphs, but for what the gateway added to the last one.
fn content(parts: &[ContentPart]) -> Value {
    let mut joined: Vec<Value> = Vec::new();
    let (mut text, mut is_added) = (String::new(), false);
    for part in parts {
        match part {
            ContentPart::Text(more) if is_added => text.push_str(more),
            ContentPart::Text(more) => Message::push_paragraph(&mut text, more),
            ContentPart::Other(value) => {
                flush(&mut text, &mut joined);
                joined.push(value.clone());
            }
            ContentPart::AdditionStart { .. } => is_added = true,
            ContentPart::CacheBreakpoint(_) => {}
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
    use std::sync::Arc;

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

    #[test]
    fn texts_that_stand_apart_are_paragraphs() {
        let text = |text: &str| ContentPart::Text(text.to_owned());
        let added = || ContentPart::AdditionStart { withheld: Arc::default() };
        let image = || ContentPart::Other(json!({"type": "image_url"}));
        let said = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(content(&[text("20"), text("30"), added(), text(" (2 left)")]), "20\n\n30 (2 left)");
        let failed = [text(Message::FAILED), text("no cat\n"), text("no dog")];
        assert_eq!(content(&failed), "Error: no cat\nno dog");
        assert_eq!(
            content(&[text("a"), text("b"), image(), text("c")]),
            json!([said("a\n\nb"), {"type": "image_url"}, said("c")])
        );
    }

    #[test]
    fn a_turn_with_several_calls_becomes_one_for_each_with_its_result_behind_it() {
        let call =
            |id: &str| ToolCall { id: id.to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
        let called = |ids: &[&str], text: &str| {
            let tool_calls = ids.iter().map(|id| call(id)).collect();
            Message { tool_calls, ..Message::text(Role::Assistant, text) }
        };
        let result =
            |id: &str| Message { tool_call_id: Some(id.to_owned()), ..Message::text(Role::Tool, id) };
        let user = Message::text(Role::User, "?");
        let before = [called(&["1", "2"], "So"), result("2"), result("1"), result("9"), user.clone()];
        let after = [called(&["1"], "So"), result("1"), called(&["2"], ""), result("2"), result("9"), user];
        assert_eq!(single_calls(&before).into_iter().map(Cow::into_owned).collect::<Vec<_>>(), after);
        assert_eq!(single_calls(&after).into_iter().map(Cow::into_owned).collect::<Vec<_>>(), after);
    }
}
