//! Detects episodes that go in circles.

use std::collections::HashMap;

use serde_json::Value;

use stint_types::chat::{Message, Role, ToolCall};

use super::arguments::canonical;

/// So many times the same is a circle.
const TIMES: usize = 3;

/// How far back it is looked for, in messages.
const WINDOW: usize = 100;

/// What shows that an episode goes in circles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadEnd {
    /// The same tool was called with the same arguments and returned the same, so many times.
    Repeated {
        /// The tool.
        tool: String,
        /// How often.
        times: usize,
    },
    /// The last results were all errors, so many.
    Failing(usize),
    /// The last results were all the same, so many.
    Unchanging(usize),
}

/// What the messages since the user spoke last show, if it still goes on.
pub(super) fn find(messages: &[Message]) -> Option<DeadEnd> {
    let messages = &messages[messages.len().saturating_sub(WINDOW)..];
    repeated(messages).or_else(|| streak(messages))
}

/// Only calls of the latest turn count, and only if their results bring nothing new: a model that polls a status and gets
/// a different one is not stuck.
fn repeated(messages: &[Message]) -> Option<DeadEnd> {
    let last = messages.iter().rposition(|message| !message.tool_calls.is_empty())?;
    let results: HashMap<&str, &Message> = messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .filter_map(|message| Some((message.tool_call_id.as_deref()?, message)))
        .collect();
    let said = |call: &ToolCall| results.get(call.id.as_str()).map(|message| message.plain_text());
    messages[last].tool_calls.iter().find_map(|call| {
        let (arguments, result) = (canonical(&call.arguments), said(call)?);
        let is_same = |other: &&ToolCall| {
            other.name == call.name
                && said(other).as_ref() == Some(&result)
                && canonical(&other.arguments) == arguments
        };
        let times = messages.iter().flat_map(|message| &message.tool_calls).filter(is_same).count();
        (times >= TIMES).then(|| DeadEnd::Repeated { tool: call.name.clone(), times })
    })
}

/// The results at the end of which all are errors, or all the same.
fn streak(messages: &[Message]) -> Option<DeadEnd> {
    let results =
        || messages.iter().rev().filter(|message| message.role == Role::Tool).map(Message::plain_text);
    let errors = results().take_while(|result| is_error(result)).count();
    if errors >= TIMES {
        return Some(DeadEnd::Failing(errors));
    }
    let last = results().next()?;
    let same = results().take_while(|result| *result == last).count();
    (same >= TIMES).then_some(DeadEnd::Unchanging(same))
}

/// Errors have no sign of their own on most wires: they say so first thing, or are an object with such a member.
fn is_error(result: &str) -> bool {
    let said = result.trim_start();
    let word = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word.eq_ignore_ascii_case("error") || has_error(said)
}

fn has_error(said: &str) -> bool {
    let object = said.starts_with('{').then(|| serde_json::from_str::<Value>(said).ok()).flatten();
    object.is_some_and(|object| match &object["error"] {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    })
}
