//! The conversation as it is sent: with thoughts of earlier turns, and with the one that is resumed from.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::Thought;
use crate::remote::{passthrough, tool_media, wire};
use stint_types::chat::{CacheTtl, ContentPart, Message, Role, ToolCallExtra};

use super::Settings;
use super::dialect::{ResumeMethod, ThoughtReplay};

/// What the assistant says to a tool's result where it must say something.
const RESULT_ANSWER: &str = "Understood.";

/// The caller's conversation.
pub(in crate::remote) fn plain_messages(settings: &Settings, messages: &[Message]) -> Vec<Value> {
    let messages = tool_media::moved(messages, |_| false);
    let has_calls = messages.iter().any(|message| !message.tool_calls.is_empty());
    // What the caller begins at the end has no thought of its own.
    let ended = messages.len().saturating_sub(1);
    let Value::Array(mut turns) = wire::messages(&messages, false) else { return Vec::new() };
    for (at, (turn, message)) in turns.iter_mut().zip(&*messages).enumerate() {
        settings.dialect.call_ids.of_model(&settings.model).rewrite(turn);
        passthrough::add_message_members(turn, message, &settings.client.members);
        return_extras(settings, message, turn);
        if let Some((name, thought)) = replayed_thought(settings, message, turn, has_calls && at < ended) {
            turn[name] = thought;
        }
        let content = if settings.dialect.passes_cache_marks {
            wire::marked_content(message, wire::mark_for_cache)
        } else if settings.rules.cache_breakpoints && message.role != Role::Assistant {
            wire::marked_content(message, wire::mark_as_breakpoint)
        } else {
            None
        };
        if let Some(content) = content {
            turn["content"] = content;
        }
    }
    if settings.dialect.results_are_answered { with_answered_results(turns) } else { turns }
}

/// The turns with an answer between a tool's result and the user's message behind it: callers who interrupt a run have none, and
/// neither has what moved out of a result.
fn with_answered_results(turns: Vec<Value>) -> Vec<Value> {
    let mut answered: Vec<Value> = Vec::with_capacity(turns.len());
    for turn in turns {
        if turn["role"] == "user" && answered.last().is_some_and(|last| last["role"] == "tool") {
            answered.push(json!({"role": "assistant", "content": RESULT_ANSWER}));
        }
        answered.push(turn);
    }
    answered
}

/// Marks the end of the instructions at the beginning for the provider's cache.
pub(super) fn mark_instructions(messages: &mut Value) {
    let Some(turns) = messages.as_array_mut() else { return };
    let Some(last) = turns.iter_mut().take_while(|turn| turn["role"] == "system").last() else { return };
    match &mut last["content"] {
        Value::String(text) if !text.is_empty() => {
            let mut part = json!({"type": "text", "text": text});
            wire::mark_as_breakpoint(&mut part, CacheTtl::Minutes);
            last["content"] = json!([part]);
        }
        Value::Array(parts) => {
            parts.last_mut().into_iter().for_each(|part| wire::mark_as_breakpoint(part, CacheTtl::Minutes));
        }
        _ => {}
    }
}

/// The same, to be continued after a closed thought and the answer so far.
pub(super) fn resumed_messages(
    settings: &Settings,
    messages: &[Message],
    thought: &Thought,
    answer: &str,
) -> Vec<Value> {
    let mut turns = plain_messages(settings, messages);
    turns.push(match settings.dialect.resume {
        ResumeMethod::PrefixReasoning => {
            let text = [&thought.text, untagged_hand_off(settings, thought)].concat();
            json!({"role": "assistant", "content": answer, "reasoning_content": text, "prefix": true})
        }
        ResumeMethod::PrefixPart => {
            let text = [&thought.text, untagged_hand_off(settings, thought)].concat();
            json!({"role": "assistant", "content": thinking_parts(&text, &json!(answer)), "prefix": true})
        }
        ResumeMethod::FinalMessage | ResumeMethod::Never => {
            let opened = [&settings.start_tag, "\n", &thought.text].concat();
            let close =
                if thought.closed { format!("{}\n\n", settings.end_tag) } else { settings.hand_off.clone() };
            let content = [&opened, &close, answer].concat();
            json!({"role": "assistant", "content": content})
        }
    });
    turns
}

/// A closed thought, and what was said behind it.
fn thinking_parts(thought: &str, said: &Value) -> Value {
    let inner = json!([{"type": "text", "text": thought}]);
    let mut parts = vec![json!({"type": "thinking", "thinking": inner, "closed": true})];
    match said {
        Value::String(text) if !text.is_empty() => parts.push(json!({"type": "text", "text": text})),
        Value::Array(more) => parts.extend(more.iter().cloned()),
        _ => {}
    }
    Value::Array(parts)
}

/// The same, with a new turn that asks for the answer to a thought which was cut. It goes into the user's last turn where
/// that is the last one: some templates want the roles by turns.
pub(super) fn new_turn_messages(settings: &Settings, messages: &[Message], thought: &Thought) -> Vec<Value> {
    let mut messages = messages.to_vec();
    let text = settings.new_turn_prompt.replace("{thought}", thought.text.trim());
    match messages.last_mut() {
        Some(Message { role: Role::User, content, .. }) => match content.last_mut() {
            Some(ContentPart::Text(last)) => *last = [last, "\n\n", &text].concat(),
            Some(ContentPart::CacheBreakpoint(_)) => content.push(ContentPart::Text(format!("\n\n{text}"))),
            _ => content.push(ContentPart::Text(text)),
        },
        _ => messages.push(Message::text(Role::User, text)),
    }
    plain_messages(settings, &messages)
}

/// What closes a thought where the upstream writes the tag itself.
fn untagged_hand_off<'s>(settings: &'s Settings, thought: &Thought) -> &'s str {
    let said = settings.hand_off.split(&settings.end_tag).next().unwrap_or_default();
    if thought.closed { "" } else { said.trim_end() }
}

/// Puts back what this provider added to its calls.
fn return_extras(settings: &Settings, message: &Message, turn: &mut Value) {
    if message.tool_calls.is_empty() || message.signed.is_empty() {
        return;
    }
    let signer = settings.signer();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, call) in message.tool_calls.iter().enumerate() {
        places.entry(&call.id).or_insert(at);
    }
    for extra in message.signed_by(&signer).filter_map(ToolCallExtra::read) {
        if let Some(&at) = places.get(extra.tool_call_id.as_str()) {
            turn["tool_calls"][at]["extra_content"] = Value::Object(extra.extra_content);
        }
    }
}

/// What goes back of the thought before a turn, and under which name; `in_run` if that is a turn of a conversation with calls.
fn replayed_thought(
    settings: &Settings,
    message: &Message,
    turn: &Value,
    in_run: bool,
) -> Option<(&'static str, Value)> {
    let thought = || message.thought.as_deref().filter(|thought| !thought.is_empty());
    match &settings.dialect.thought_replay {
        ThoughtReplay::Never => None,
        ThoughtReplay::AsReceived(member) => Some((*member, json!(message.thought.as_ref()?))),
        ThoughtReplay::WithCalls { .. } if !in_run || message.role != Role::Assistant => None,
        ThoughtReplay::WithCalls { member, missing } => Some((*member, json!(thought().unwrap_or(missing)))),
        ThoughtReplay::AsPart => Some(("content", thinking_parts(thought()?, &turn["content"]))),
        ThoughtReplay::Details => {
            let signer = settings.signer();
            let blocks = message.signed_by(&signer).filter(|block| ToolCallExtra::read(block).is_none());
            let blocks = blocks.filter_map(|block| serde_json::from_str(block).ok());
            let blocks: Vec<Value> = blocks.collect();
            (!blocks.is_empty()).then(|| ("reasoning_details", blocks.into()))
        }
    }
}
