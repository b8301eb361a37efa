//! Translates a conversation to Anthropic's form: the system text separately, alternating turns, blocks in the required
//! order. An assistant's turn has the thoughts that this model signed, each where it stood.

use serde_json::{Value, json};

use crate::remote::begun_answer;
use crate::remote::caller_options::{DocumentPart, ImageSource, refuse_media_in_instructions};
use crate::remote::{user_turn, wire};
use crate::{BackendCall, Failure, GenerationPart, Thought, UnsupportedFeature};
use stint_types::chat::{ContentPart, EffortChange, Message, Request, Role};

use super::Settings;
use super::additions::AdditionWriter;
use super::assistant_turn::{AssistantTurn, text_block};
use super::distinct_ids::DistinctIds;
use super::placed_thought::PlacedThought;
use super::turns::AnthropicTurns;

/// The system's words, where there are some, and the turns. Signed thoughts go along where the model `thinks`; and where the
/// caller changes how deep it is to, that stands where it did.
pub(super) fn turns(
    settings: &Settings,
    call: &BackendCall,
    thinks: bool,
    efforts: &[EffortChange],
) -> Result<(Option<Value>, Value), Failure> {
    let request = &*call.request;
    refuse_media_in_instructions(request)?;
    let (instructions, conversation) = divided(settings, request);
    let mut turns = AnthropicTurns::default();
    let (mut additions, mut ids) = (AdditionWriter::new(settings, request), DistinctIds::default());
    let mut efforts = efforts.iter().peekable();
    for (at, message) in conversation {
        while let Some(change) = efforts.next_if(|change| change.after <= at) {
            turns.set_effort(&change.word);
        }
        match message.role {
            Role::Assistant => {
                let ids = ids.of_calls(&message.tool_calls);
                turns.push("assistant", assistant(settings, message, ids, thinks)?);
            }
            Role::Tool => turns.push("user", result(additions.before(message), message, &mut ids)?),
            Role::User => turns.push("user", content(additions.before(message))?),
            Role::System => turns.instruct(&content(&message.content)?),
        }
        additions.after(message, &mut turns);
    }
    efforts.for_each(|change| turns.set_effort(&change.word));
    if let GenerationPart::Solution { thought, .. } = &call.part {
        turns.push("user", quoted(settings, thought));
    }
    let begun = match &call.part {
        GenerationPart::Solution { answer, .. } => answer.trim_end(),
        _ => "",
    };
    match turns.last() {
        None => Err(user_turn::missing(request)),
        Some("assistant") if thinks || !settings.goes_on() => Err(begun_answer::cannot_continue()),
        Some(_) => {
            if !begun.is_empty() {
                turns.push("assistant", vec![text_block(begun)]);
            }
            Ok((system(settings, &instructions)?, turns.into_json()))
        }
    }
}

/// A message, and how many stand before it.
type Placed<'r> = (usize, &'r Message);

/// The instructions that stand before the conversation, and the conversation. Where a model takes instructions in the middle
/// of it, those that come later stay where they are: the beginning would be another one with them.
fn divided<'r>(settings: &Settings, request: &'r Request) -> (Vec<Placed<'r>>, Vec<Placed<'r>>) {
    let mut has_begun = false;
    request.messages.iter().enumerate().partition(|(_, message)| {
        has_begun |= message.role != Role::System;
        message.role == Role::System && !(has_begun && settings.rules.late_instructions)
    })
}

/// One text, or blocks where some of it is to be kept in the cache.
fn system(settings: &Settings, messages: &[Placed<'_>]) -> Result<Option<Value>, Failure> {
    let all = || messages.iter().map(|(_, message)| *message);
    let is_marked = || all().any(|message| message.content.iter().any(|part| part.cache_ttl().is_some()));
    // Where thoughts are bound to them they have one form, whatever is marked.
    if settings.rules.thoughts_bound || is_marked() {
        let blocks = content(all().flat_map(|message| &message.content))?;
        return Ok((!blocks.is_empty()).then_some(Value::Array(blocks)));
    }
    let texts: Vec<String> = all().map(Message::paragraphs).filter(|text| !text.trim().is_empty()).collect();
    Ok((!texts.is_empty()).then(|| json!(texts.join("\n\n"))))
}

/// True in a run with tools whose last turn lacks the thought that this model would have signed.
pub(super) fn is_unsigned(settings: &Settings, request: &Request) -> bool {
    let last = request.messages.iter().rfind(|message| message.role == Role::Assistant);
    last.is_some_and(|turn| !turn.tool_calls.is_empty() && signed_blocks(settings, turn).next().is_none())
}

/// What this model signed of a turn's thought. What came back changed into something else is left out.
fn signed_blocks(settings: &Settings, message: &Message) -> impl Iterator<Item = PlacedThought> {
    let blocks: Vec<PlacedThought> =
        message.signed_by(&settings.signer()).filter_map(PlacedThought::read).collect();
    blocks.into_iter()
}

/// A turn of the model, with each thought where it stood: behind anything else it would not be accepted.
fn assistant(
    settings: &Settings,
    message: &Message,
    ids: Vec<String>,
    thinks: bool,
) -> Result<Vec<Value>, Failure> {
    let mut thoughts = signed_blocks(settings, message).filter(|_| thinks).peekable();
    let is_text = message.content.iter().all(|part| matches!(part, ContentPart::Text(_)));
    let mut turn = AssistantTurn::new(message.texts().filter(|_| is_text), &message.tool_calls, ids);
    if !is_text {
        while let Some(thought) = thoughts.next_if(|thought| thought.calls == 0) {
            turn.push(thought.block);
        }
        content(&message.content)?.into_iter().for_each(|block| turn.push(block));
    }
    thoughts.for_each(|thought| turn.think(thought));
    Ok(turn.into_blocks())
}

/// The result of a tool, of which `parts` are sent here. Only the whole of it can be marked for the cache, so what stands
/// behind a mark, or was added by the gateway, comes after it.
fn result(parts: &[ContentPart], message: &Message, ids: &mut DistinctIds) -> Result<Vec<Value>, Failure> {
    let marked = message.is_error && takes_error_mark(parts);
    let parts = if marked { without_failed(parts) } else { parts };
    let is_end = |part: &ContentPart| {
        matches!(part, ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_))
    };
    let added = parts.iter().position(|part| matches!(part, ContentPart::AdditionStart { .. }));
    let end = added.or_else(|| parts.iter().rposition(is_end));
    let (given, after) = parts.split_at(end.unwrap_or(parts.len()));
    let keep = parts.iter().filter_map(ContentPart::cache_ttl).max();
    let given: Vec<ContentPart> = given.iter().filter(|part| !is_end(part)).cloned().collect();
    let of = ids.of_result(message.tool_call_id.as_deref().unwrap_or_default());
    let mut result = json!({"type": "tool_result", "tool_use_id": of, "content": result_content(&given)?});
    if marked {
        result["is_error"] = json!(true);
    }
    if let Some(keep) = keep {
        wire::mark_for_cache(&mut result, keep);
    }
    let mut blocks = vec![result];
    blocks.extend(content(after.iter().skip(1))?);
    Ok(blocks)
}

/// One text, or blocks: texts that stand apart stay so.
fn result_content(parts: &[ContentPart]) -> Result<Value, Failure> {
    if let [ContentPart::Text(only)] = parts {
        return Ok(json!(only));
    }
    let is_text = parts.iter().all(|part| matches!(part, ContentPart::Text(_)));
    let mut blocks = content(parts)?;
    Ok(match blocks.as_mut_slice() {
        [] => json!(""),
        [only] if is_text => only["text"].take(),
        _ => Value::Array(blocks),
    })
}

/// Whether a result can be marked as failed: Claude takes that only of what is text, and not of nothing. Of others the words alone
/// say it.
fn takes_error_mark(parts: &[ContentPart]) -> bool {
    let added = parts.iter().position(|part| matches!(part, ContentPart::AdditionStart { .. }));
    let own = without_failed(&parts[..added.unwrap_or(parts.len())]);
    let says = |part: &ContentPart| matches!(part, ContentPart::Text(text) if !text.trim().is_empty());
    own.iter().any(says) && !own.iter().any(|part| matches!(part, ContentPart::Other(_)))
}

/// A failed tool's result without the words for that: here is a sign for it.
fn without_failed(parts: &[ContentPart]) -> &[ContentPart] {
    match parts.split_first() {
        Some((ContentPart::Text(text), rest)) if text == Message::FAILED => rest,
        _ => parts,
    }
}

/// Blocks of text may not be blank.
fn content<'p>(parts: impl IntoIterator<Item = &'p ContentPart>) -> Result<Vec<Value>, Failure> {
    let mut blocks = Vec::new();
    for part in parts {
        match part {
            ContentPart::Text(text) if text.trim().is_empty() => {}
            ContentPart::Text(text) => blocks.push(text_block(text)),
            ContentPart::Other(value) => blocks.push(media(value)?),
            ContentPart::AdditionStart { .. } => {}
            ContentPart::CacheBreakpoint(keep) => {
                if let Some(block) = blocks.last_mut() {
                    wire::mark_for_cache(block, *keep);
                }
            }
        }
    }
    Ok(blocks)
}

fn media(value: &Value) -> Result<Value, Failure> {
    DocumentPart::of(value).map_or_else(|| image(value), |file| Ok(document(&file)))
}

fn document(file: &DocumentPart<'_>) -> Value {
    let source = match file.bytes() {
        Some(bytes) => json!({"type": "base64", "media_type": "application/pdf", "data": bytes}),
        None => json!({"type": "url", "url": file.url}),
    };
    json!({"type": "document", "source": source, "title": file.name})
}

fn image(value: &Value) -> Result<Value, Failure> {
    let source = match ImageSource::of(value) {
        Some(ImageSource::Inline(kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        Some(ImageSource::Url(url)) => json!({"type": "url", "url": url}),
        None => {
            return Err(Failure::incapable(
                UnsupportedFeature::Prompt,
                "this model takes text, images and PDF files only",
            ));
        }
    };
    Ok(json!({"type": "image", "source": source}))
}

/// A thought without a signature cannot go back as one, so it is quoted.
fn quoted(settings: &Settings, thought: &Thought) -> Vec<Value> {
    let text = thought.text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    let Settings { thought_so_far, answer_now, .. } = settings;
    vec![text_block(&format!("{thought_so_far}\n\n{text}\n\n{answer_now}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a tool that failed, as it is sent.
    fn failed(more: Vec<ContentPart>) -> Value {
        let parts = [vec![ContentPart::Text(Message::FAILED.to_owned())], more].concat();
        let message = Message {
            content: parts.clone(),
            tool_call_id: Some("c".to_owned()),
            is_error: true,
            ..Message::text(Role::Tool, "")
        };
        result(&parts, &message, &mut DistinctIds::default()).unwrap().swap_remove(0)
    }

    #[test]
    fn texts_of_a_result_stay_apart() {
        let given = |texts: &[&str]| {
            let content: Vec<ContentPart> =
                texts.iter().map(|text| ContentPart::Text((*text).to_owned())).collect();
            let message = Message { content, ..Message::text(Role::Tool, "") };
            result(&message.content, &message, &mut DistinctIds::default()).unwrap()[0]["content"].clone()
        };
        assert_eq!(given(&["20", "30"]), json!([text_block("20"), text_block("30")]));
        assert_eq!((given(&["20"]), given(&["20", " "])), (json!("20"), json!("20")));
        assert_eq!((given(&[" "]), given(&[]), given(&["", ""])), (json!(" "), json!(""), json!("")));
    }

    /// "all content must be type text if `is_error` is true", and none may be empty.
    #[test]
    fn what_claude_does_not_take_as_failed_says_so_in_words() {
        let words = failed(vec![ContentPart::Text("no cat".to_owned())]);
        assert_eq!((&words["is_error"], &words["content"]), (&json!(true), &json!("no cat")));
        let nothing = failed(Vec::new());
        assert_eq!((&nothing["is_error"], &nothing["content"]), (&Value::Null, &json!(Message::FAILED)));
        let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
        let screen = failed(vec![ContentPart::Other(image)]);
        assert!(screen["is_error"].is_null() && screen["content"][0]["text"] == Message::FAILED, "{screen}");
    }
}
