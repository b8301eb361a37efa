//! Translates a conversation to input items.

use std::ops::Range;

use serde_json::{Value, json};

use crate::remote::call_ids::limited_id;
use crate::remote::caller_options::{DocumentPart, refuse_media_in_instructions};
use crate::remote::{user_turn, wire};
use crate::{Failure, UnsupportedFeature};
use stint_types::chat::{CacheTtl, ContentPart, Message, Request, Role, ToolCall, TurnPhase};

use super::Settings;
use super::custom_tools::{CALL_ID_MAX, CustomCalls};
use super::letter_places::LetterPlaces;
use super::reasoning::Reasoning;

/// What the system says first, and the items of the rest. Where parts can be marked for the provider's cache, what it says first
/// is among the items always: `instructions` takes no mark, and a prompt must begin alike each time.
pub(super) fn instructions_and_items(
    settings: &Settings,
    request: &Request,
) -> Result<(String, Value), Failure> {
    refuse_media_in_instructions(request)?;
    let first = request.messages.iter().take_while(|message| message.role == Role::System).count();
    // Instructions alone are input, too: `input` cannot be empty.
    let is_alone = first == request.messages.len();
    let apart = if settings.rules.cache_breakpoints || is_alone { 0 } else { first };
    let (system, rest) = request.messages.split_at(apart);
    let instructions: Vec<String> = system.iter().map(Message::paragraphs).collect();
    let custom = CustomCalls::of(request);
    let items: Result<Vec<Vec<Value>>, Failure> =
        rest.iter().map(|message| items(settings, &custom, message)).collect();
    let mut items: Vec<Value> = items?.into_iter().flatten().collect();
    if let Some(last) = items.get_mut(..first - apart).and_then(<[Value]>::last_mut)
        && settings.marks_instructions(request)
        && let Value::String(text) = &last["content"]
        && !text.is_empty()
    {
        last["content"] = json!([marked(json!({"type": "input_text", "text": text}))]);
    }
    if request.messages.is_empty() {
        return Err(user_turn::missing(request));
    }
    Ok((instructions.join("\n\n"), Value::Array(items)))
}

fn items(settings: &Settings, custom: &CustomCalls<'_>, message: &Message) -> Result<Vec<Value>, Failure> {
    Ok(match message.role {
        Role::System => vec![json!({"role": "developer", "content": instructions(settings, message)?})],
        Role::User => vec![json!({"role": "user", "content": content(settings, &message.content)?})],
        Role::Assistant => assistant_items(settings, custom, message),
        Role::Tool => {
            let of = message.tool_call_id.as_deref().unwrap_or_default();
            let output = content(settings, &message.content)?;
            let kind = if custom.has_result(of) { "custom_tool_call_output" } else { "function_call_output" };
            vec![json!({"type": kind, "call_id": limited_id(of, CALL_ID_MAX), "output": output})]
        }
    })
}

/// A turn of the model: its text, its calls, and each item of its reasoning where it stood. The provider refuses reasoning that
/// nothing follows, so the last is left out where the caller has nothing of what came after it.
fn assistant_items(settings: &Settings, custom: &CustomCalls<'_>, message: &Message) -> Vec<Value> {
    let reasoning = Reasoning::all(message, &settings.signer());
    let (text, mut written) = (message.plain_text(), 0);
    let letters = LetterPlaces::of(&text, !reasoning.is_empty() || !message.phases.is_empty());
    let phases = PlacedPhase::all(message, &letters);
    // Each is placed once: a turn may have thousands.
    let (first, later): (Vec<_>, Vec<_>) =
        reasoning.into_iter().partition(|it| !it.after_text && it.after_calls == 0);
    let (mut placed, mut behind): (Vec<_>, Vec<_>) =
        later.into_iter().partition(|it| it.place(&letters).is_some());
    placed.sort_by_key(|it| it.place(&letters));
    behind.sort_by_key(|it| it.after_calls);
    let mut items: Vec<Value> = first.into_iter().map(|it| Value::Object(it.item)).collect();
    for it in placed {
        let until = it.place(&letters).unwrap_or(written);
        items.extend(said(&text, &phases, written..until));
        written = until;
        items.push(Value::Object(it.item));
    }
    items.extend(said(&text, &phases, written..text.len()));
    let mut behind = behind.into_iter().peekable();
    for (at, call) in message.tool_calls.iter().enumerate() {
        while let Some(it) = behind.next_if(|it| it.after_calls <= at) {
            items.push(Value::Object(it.item));
        }
        items.push(custom.as_call(call).unwrap_or_else(|| function_call(call)));
    }
    items.truncate(items.iter().rposition(|item| item["type"] != "reasoning").map_or(0, |last| last + 1));
    items
}

/// What some of a turn's text is for, and the byte at which that begins. Each part of the text begins one.
struct PlacedPhase<'m> {
    at: usize,
    word: Option<&'m str>,
}

impl PlacedPhase<'_> {
    fn all<'m>(message: &'m Message, letters: &LetterPlaces) -> Vec<PlacedPhase<'m>> {
        let placed = |phase: &'m TurnPhase| PlacedPhase {
            at: letters.byte(phase.letters_before),
            word: phase.word.as_deref(),
        };
        let stated: Vec<PlacedPhase<'m>> = message.phases.iter().map(placed).collect();
        let (mut all, mut at) = (Vec::new(), 0);
        for text in message.texts() {
            let begun = stated.partition_point(|phase| phase.at <= at);
            all.push(PlacedPhase { at, word: stated[..begun].last().and_then(|phase| phase.word) });
            at += text.len();
        }
        all.extend(stated);
        all.sort_by_key(|phase| phase.at);
        all
    }
}

/// Some of a turn's text, an item for each phase in it. The provider wants each phase back with its text. The phases stand in their
/// order.
fn said(text: &str, phases: &[PlacedPhase<'_>], range: Range<usize>) -> Vec<Value> {
    let before = |at: usize| phases.partition_point(|phase| phase.at < at);
    let inside = phases[before(range.start)..before(range.end).max(before(range.start))].iter();
    let inside = inside.map(|phase| phase.at);
    let cuts: Vec<usize> = [range.start].into_iter().chain(inside).chain([range.end]).collect();
    let item = |cut: &[usize]| {
        let said = text.get(cut[0]..cut[1]).filter(|said| !said.is_empty())?;
        let mut item = json!({"role": "assistant", "content": said});
        let begun = phases.partition_point(|phase| phase.at <= cut[0]);
        if let Some(word) = phases[..begun].last().and_then(|phase| phase.word) {
            item["phase"] = word.into();
        }
        Some(item)
    };
    cuts.windows(2).filter_map(item).collect()
}

fn function_call(ToolCall { id, name, arguments }: &ToolCall) -> Value {
    let id = limited_id(id, CALL_ID_MAX);
    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
}

/// What the system says, which is text; in parts only where one of them is marked.
fn instructions(settings: &Settings, message: &Message) -> Result<Value, Failure> {
    let is_marked = message.content.iter().any(|part| part.cache_ttl().is_some());
    if is_marked && settings.rules.cache_breakpoints {
        content(settings, &message.content)
    } else {
        Ok(json!(message.paragraphs()))
    }
}

fn content(settings: &Settings, parts: &[ContentPart]) -> Result<Value, Failure> {
    if settings.rules.cache_breakpoints && parts.iter().any(|part| part.cache_ttl().is_some()) {
        return marked_content(parts);
    }
    let said = wire::merged_parts(parts);
    match said.as_slice() {
        [] => Ok(json!("")),
        [only] if let ContentPart::Text(text) = &**only => Ok(json!(text)),
        said => said.iter().filter_map(|part| self::part(part).transpose()).collect(),
    }
}

/// The parts, each with the mark that stands behind it.
fn marked_content(parts: &[ContentPart]) -> Result<Value, Failure> {
    let mut said: Vec<Value> = Vec::new();
    for part in parts {
        said.extend(self::part(part)?);
        if part.cache_ttl().is_some()
            && let Some(last) = said.pop()
        {
            said.push(marked(last));
        }
    }
    Ok(Value::Array(said))
}

fn marked(mut part: Value) -> Value {
    wire::mark_as_breakpoint(&mut part, CacheTtl::Minutes);
    part
}

fn part(part: &ContentPart) -> Result<Option<Value>, Failure> {
    let value = match part {
        ContentPart::Text(text) => return Ok(Some(json!({"type": "input_text", "text": text}))),
        ContentPart::Other(value) => value,
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => return Ok(None),
    };
    if let Some(file) = DocumentPart::of(value) {
        let mut source = match file.data {
            Some(data) => json!({"type": "input_file", "filename": file.name, "file_data": data}),
            None => json!({"type": "input_file", "file_url": file.url}),
        };
        if let Some(detail) = file.detail {
            source["detail"] = detail.into();
        }
        return Ok(Some(source));
    }
    let Some(url) = value.pointer("/image_url/url").and_then(Value::as_str) else {
        let why = "this model takes text, images and PDF files only";
        return Err(Failure::incapable(UnsupportedFeature::Prompt, why));
    };
    let detail = value.pointer("/image_url/detail").and_then(Value::as_str).unwrap_or("auto");
    Ok(Some(json!({"type": "input_image", "image_url": url, "detail": detail})))
}
