//! Detects episodes that go in circles.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use stint_types::chat::{ContentPart, Message, Role, ToolCall};

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
    // Each call and each result is read once: they may have megabytes, and calls may share an id.
    let hashes = RandomState::new();
    let results: HashMap<&str, u64> = messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .filter_map(|message| Some((message.tool_call_id.as_deref()?, hash(message, &hashes))))
        .collect();
    let identity = |call: &ToolCall| {
        let result = results.get(call.id.as_str())?;
        Some(hashes.hash_one((&call.name, canonical(&call.arguments), result)))
    };
    let (mut counts, mut latest) = (HashMap::new(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        for call in &message.tool_calls {
            let Some(identity) = identity(call) else { continue };
            *counts.entry(identity).or_insert(0) += 1;
            latest.extend((at == last).then_some((call, identity)));
        }
    }
    latest.into_iter().find_map(|(call, identity)| {
        let times = counts.get(&identity).copied().unwrap_or_default();
        (times >= TIMES).then(|| DeadEnd::Repeated { tool: call.name.clone(), times })
    })
}

/// The results at the end of which all are errors, or all the same.
fn streak(messages: &[Message]) -> Option<DeadEnd> {
    let results = || messages.iter().rev().filter(|message| message.role == Role::Tool);
    let errors = results().take_while(|result| is_error(&result.plain_text())).count();
    if errors >= TIMES {
        return Some(DeadEnd::Failing(errors));
    }
    let last = results().next()?;
    let text = last.plain_text();
    let is_same = |result: &&Message| result.plain_text() == text && result.media().eq(last.media());
    let same = results().take_while(is_same).count();
    (same >= TIMES).then_some(DeadEnd::Unchanging(same))
}

/// A hash of what a tool returned, its images and files too. Nothing of it is copied. Texts count as one, however they are cut into
/// parts.
fn hash(result: &Message, hashes: &RandomState) -> u64 {
    let mut hasher = hashes.build_hasher();
    for part in &result.content {
        if let ContentPart::Text(text) = part {
            hasher.write(text.as_bytes());
        }
    }
    result.media().for_each(|value| value.hash(&mut hasher));
    hasher.finish()
}

/// Errors have no sign of their own on most wires: they say so first thing, or are an object with such a member.
fn is_error(result: &str) -> bool {
    let said = result.trim_start();
    let word = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word.eq_ignore_ascii_case("error") || has_error(said)
}

/// Without a tree of the result: that would take many times the result's own memory.
fn has_error(said: &str) -> bool {
    let object = said.starts_with('{').then(|| serde_json::from_str::<ErrorMember>(said).ok()).flatten();
    object.is_some_and(|object| object.error.is_some_and(|StatedError(is_stated)| is_stated))
}

/// What a result has in its member `error`.
#[derive(Debug, Default, Deserialize)]
struct ErrorMember {
    #[serde(default)]
    error: Option<StatedError>,
}

/// Whether it says that there was one.
#[derive(Debug)]
struct StatedError(bool);

impl<'de> Deserialize<'de> for StatedError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StatedError, D::Error> {
        deserializer.deserialize_any(ErrorVisitor)
    }
}

struct ErrorVisitor;

impl<'de> Visitor<'de> for ErrorVisitor {
    type Value = StatedError;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_bool<E: Error>(self, flag: bool) -> Result<StatedError, E> {
        Ok(StatedError(flag))
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<StatedError, E> {
        Ok(StatedError(true))
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<StatedError, E> {
        Ok(StatedError(true))
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<StatedError, E> {
        Ok(StatedError(true))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<StatedError, E> {
        Ok(StatedError(!text.is_empty()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StatedError, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(StatedError(true))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<StatedError, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StatedError(true))
    }
}
