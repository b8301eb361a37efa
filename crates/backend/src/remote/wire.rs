//! Members that several APIs write in the same way.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use stint_types::catalog::{MemberAction, MemberRules};
use stint_types::chat::{CacheTtl, ContentPart, EmbeddingInputs, EmbeddingRequest, Message, Request, Role};

/// A number as the caller wrote it: through a float twice as wide, 0.7 would become 0.699999988.
pub(super) fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, |value| json!(value))
}

/// What the caller says of how tokens are drawn, as servers of open models take it.
pub(super) fn sampling_members(request: &Request) -> Vec<(String, Value)> {
    let sampling = &request.sampling;
    let stated = [
        ("temperature", sampling.temperature.map(decimal)),
        ("top_p", sampling.top_p.map(decimal)),
        ("top_k", sampling.top_k.map(|k| json!(k))),
    ];
    let extra = |name: &'static str| (name, request.extra.get(name).cloned());
    let passed = ["presence_penalty", "frequency_penalty"].map(extra);
    let members = stated.into_iter().chain(passed);
    members.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The text of a member; empty where there is none.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A call for vectors in OpenAI's form, with what else the caller says to whom takes it.
pub(super) fn embedding(ask: &EmbeddingRequest, model: Option<&str>, rules: &MemberRules) -> Value {
    let mut body = ask.extra.clone();
    let unknown = ask.unknown_members.iter();
    let passed = unknown.filter(|(name, _)| rules.action_for(name) == MemberAction::Pass);
    body.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
    if let Some(model) = model {
        body.insert("model".to_owned(), json!(model));
    }
    let input = match &ask.inputs {
        EmbeddingInputs::Texts(texts) => json!(texts),
        EmbeddingInputs::Tokens(lists) => json!(lists),
    };
    body.insert("input".to_owned(), input);
    Value::Object(body)
}

/// The conversation.
pub(super) fn messages(messages: &[Message], thoughts_back: bool) -> Value {
    messages.iter().map(|turn| message(turn, thoughts_back)).collect()
}

fn message(message: &Message, thoughts_back: bool) -> Value {
    let mut turn = Map::new();
    turn.insert("role".to_owned(), json!(message.role.as_str()));
    turn.insert("content".to_owned(), content(message));
    let mut optional = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            turn.insert(name.to_owned(), value);
        }
    };
    optional("name", message.name.as_ref().map(|name| json!(name)));
    optional("tool_call_id", message.tool_call_id.as_ref().map(|id| json!(id)));
    optional("reasoning_content", message.thought.as_ref().filter(|_| thoughts_back).map(|text| json!(text)));
    let calls = message.tool_calls.iter().map(|call| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call.id, "type": "function", "function": function})
    });
    optional("tool_calls", (!message.tool_calls.is_empty()).then(|| calls.collect()));
    Value::Object(turn)
}

/// The text, without marks for a cache.
fn content(message: &Message) -> Value {
    let said = merged_parts(&message.content);
    match said.as_slice() {
        [] if message.role == Role::Assistant && !message.tool_calls.is_empty() => Value::Null,
        [] => json!(""),
        [only] if let ContentPart::Text(text) = &**only => json!(text),
        said => said.iter().filter_map(|part| self::part(part)).collect(),
    }
}

fn part(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text(text) => Some(json!({"type": "text", "text": text})),
        ContentPart::Other(value) => Some(media(value)),
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => None,
    }
}

/// An image, a sound or a file. How closely a file is to be looked at is a word of Responses alone. Who takes a file's address here takes
/// it in place of its bytes.
fn media(value: &Value) -> Value {
    let mut media = value.clone();
    if let Some(file) = media.get_mut("file").and_then(Value::as_object_mut) {
        file.shift_remove("detail");
        if let Some(url) = file.shift_remove("file_url") {
            file.insert("file_data".to_owned(), url);
        }
    }
    media
}

/// The parts that say something. What stands behind a seam goes on with the text before it, so that what was one text stays one.
pub(super) fn merged_parts(parts: &[ContentPart]) -> Vec<Cow<'_, ContentPart>> {
    let mut said: Vec<Cow<'_, ContentPart>> = Vec::new();
    let mut is_behind = false;
    for part in parts {
        match (part, said.last_mut()) {
            (ContentPart::CacheBreakpoint(_), _) => {}
            (ContentPart::AdditionStart { .. }, _) => is_behind = true,
            (ContentPart::Text(more), Some(last)) if is_behind && matches!(&**last, ContentPart::Text(_)) => {
                if let ContentPart::Text(text) = last.to_mut() {
                    text.push_str(more);
                }
            }
            _ => said.push(Cow::Borrowed(part)),
        }
    }
    said
}

/// The text, part by part, with the marks for a cache as `mark` writes them; nothing if there are none.
pub(super) fn marked_content(message: &Message, mark: impl Fn(&mut Value, CacheTtl)) -> Option<Value> {
    let mut parts: Vec<Value> = Vec::new();
    if !message.content.iter().any(|part| part.cache_ttl().is_some()) {
        return None;
    }
    for part in &message.content {
        parts.extend(self::part(part));
        if let Some((keep, last)) = part.cache_ttl().zip(parts.last_mut()) {
            mark(last, keep);
        }
    }
    (!parts.is_empty()).then_some(Value::Array(parts))
}

/// How a block, or tool, is marked.
const CACHE_MARK: &str = "cache_control";

/// Has all up to this block, or tool, kept in the provider's cache for so long.
pub(super) fn mark_for_cache(block: &mut Value, keep: CacheTtl) {
    block[CACHE_MARK] = match keep {
        CacheTtl::Minutes => json!({"type": "ephemeral"}),
        CacheTtl::Hour => json!({"type": "ephemeral", "ttl": "1h"}),
    };
}

/// Has the provider's cache hold up to this part, in OpenAI's form. For how long, it says itself.
pub(super) fn mark_as_breakpoint(part: &mut Value, _: CacheTtl) {
    part["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
}

/// Has all that is marked before the last mark of an hour kept for an hour too: Anthropic refuses a mark of an hour behind one
/// of minutes, which not every caller knows. It reads the tools first, then the instructions, then the conversation.
pub(super) fn extend_hour_marks(body: &mut Value) {
    let (mut hours, mut seen) = (0, 0);
    for_each_marked(body, |block| {
        seen += 1;
        if block[CACHE_MARK]["ttl"] == "1h" {
            hours = seen;
        }
    });
    let mut left = hours;
    for_each_marked(body, |block| {
        if left > 0 {
            left -= 1;
            mark_for_cache(block, CacheTtl::Hour);
        }
    });
}

/// What is marked, in the order in which it is read.
fn for_each_marked(body: &mut Value, mut heed: impl FnMut(&mut Value)) {
    let mut heed_all = |blocks: Option<&mut Value>| {
        let blocks = blocks.and_then(Value::as_array_mut).into_iter().flatten();
        blocks.filter(|block| block.get(CACHE_MARK).is_some()).for_each(&mut heed);
    };
    heed_all(body.get_mut("tools"));
    heed_all(body.get_mut("system"));
    let Some(turns) = body.get_mut("messages").and_then(Value::as_array_mut) else { return };
    for is_system in [true, false] {
        let turns = turns.iter_mut().filter(|turn| (turn["role"] == "system") == is_system);
        turns.for_each(|turn| heed_all(turn.get_mut("content")));
    }
}
