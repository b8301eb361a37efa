//! How many tokens a prompt has at most, without its tokenizer.

use std::collections::BTreeSet;

use serde_json::Value;

use stint_types::catalog::ImageTokens;
use stint_types::chat::{
    ContentPart, EmbeddingInputs, EmbeddingRequest, MemberPhase, Message, Request, Role, Tool,
};
use stint_types::units::Tokens;

use crate::media_bound;

/// What a template puts around one message.
const MESSAGE: u64 = 16;
/// What a template puts around the conversation, a system prompt of its own included.
const CONVERSATION: u64 = 128;
/// What a template says about tools before it lists them.
const TOOLS: u64 = 1024;
/// What asks for a form in words.
const FORM: u64 = 512;
/// What closing an object, and telling in its description what it is not held to, adds to a part of a schema.
const SCHEMA_PART: u64 = 64;
/// What is declared of a tool, besides its name, only because it was called before.
const CALLED_TOOL: u64 = 64;
/// What sets a text apart from the one before it.
const PARAGRAPH: u64 = 2;
/// What is said of images in a tool's result that stand in a message of their own, besides the call's id.
const MOVED: u64 = 192;
/// No text is written in tokens of so many bytes on average.
const BYTES_OF_A_TOKEN_MOST: u64 = 16;

/// An upper bound: a token is at least one byte of text. `images` says what the model is billed for one.
pub fn prompt_tokens(request: &Request, images: &ImageTokens) -> Tokens {
    if let Some(ids) = &request.prompt_ids {
        return Tokens(CONVERSATION + ids.len() as u64);
    }
    let messages: u64 = request.messages.iter().map(|one| message(one, images)).sum();
    Tokens(CONVERSATION + messages + tools_and_format(request) + rendered_members(request))
}

/// The members that are passed on and may be rendered into the prompt. Grammars and the like stand in no prompt; of what nobody knows
/// that is not known either.
fn rendered_members(request: &Request) -> u64 {
    let is_rendered =
        |name: &str| MemberPhase::of(name) == MemberPhase::Prompt || !MemberPhase::is_known(name);
    let passed = request.unknown_members.iter().filter(|(name, _)| is_rendered(name));
    passed.map(|(name, value)| MESSAGE + bytes(name) + json(value)).sum()
}

fn tools_and_format(request: &Request) -> u64 {
    let members = |tool: &Tool| tool.anthropic_members.as_ref().map_or(0, json);
    // What a provider says of a tool that its models know by themselves.
    let known = |tool: &Tool| if tool.anthropic_type().is_some() { 2 * TOOLS } else { 0 };
    let tool = |tool: &Tool| TOOLS / 16 + declaration(tool) + members(tool) + known(tool);
    let tools: u64 = request.tools.iter().map(tool).sum();
    let format = request.response_format.as_ref().map_or(0, form);
    let preamble = if request.tools.is_empty() { 0 } else { TOOLS };
    preamble + tools + format + called_tools(request)
}

/// A form that the answer must have: a schema as it stands or as a provider takes it, or what asks for it in words.
fn form(format: &Value) -> u64 {
    if format["type"] == "text" { json(format) } else { FORM + schema(format) }
}

fn declaration(tool: &Tool) -> u64 {
    let declared = &tool.declaration;
    if declared.pointer("/function/strict") == Some(&Value::Bool(true)) {
        schema(declared)
    } else {
        json(declared)
    }
}

/// A schema may be written in other words, and what is quoted in its descriptions has a sign before each of its own marks.
fn schema(value: &Value) -> u64 {
    let text = value.to_string();
    let parts = text.bytes().filter(|byte| *byte == b'{').count();
    let marks = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    spaced_len(&text).saturating_add(count(marks)).saturating_add(count(parts).saturating_mul(SCHEMA_PART))
}

/// The tools that were called before, where the request declares none any more: some APIs have them declared all the same.
fn called_tools(request: &Request) -> u64 {
    if !request.tools.is_empty() {
        return 0;
    }
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    let preamble = if names.is_empty() { 0 } else { TOOLS };
    preamble + names.iter().map(|name| CALLED_TOOL + spaced_len(name)).sum::<u64>()
}

/// How few tokens a prompt can have: only of what every template shows, its texts and its calls.
pub fn min_prompt_tokens(request: &Request) -> Tokens {
    let texts = request.messages.iter().flat_map(|message| &message.content).map(|part| match part {
        ContentPart::Text(text) => bytes(text),
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => 0,
    });
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    Tokens(
        (texts.sum::<u64>() + calls.map(|call| bytes(&call.arguments)).sum::<u64>()) / BYTES_OF_A_TOKEN_MOST,
    )
}

/// Whether what stands beside the messages was counted with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFrame {
    /// It was, and perhaps more of it.
    Counted,
    /// Something of it is another.
    Changed,
}

/// An upper bound of a prompt that goes on from one that was counted with the same tokenizer: that, and a token for each byte of
/// what is new. `before` are the messages that were counted, as they now are without what is put behind them.
pub fn extended_prompt_tokens(
    counted: Tokens,
    before: &[Message],
    request: &Request,
    frame: PromptFrame,
    images: &ImageTokens,
) -> Tokens {
    let sum = |messages: &[Message]| messages.iter().map(|one| message(one, images)).sum::<u64>();
    let new = sum(&request.messages).saturating_sub(sum(before));
    let beside = match frame {
        PromptFrame::Counted => called_tools(request),
        PromptFrame::Changed => frame_tokens(request, images),
    };
    let uncertain: u64 = before.iter().map(|one| uncertain_tokens(one, images)).sum();
    counted + Tokens(CONVERSATION + new + uncertain + beside)
}

/// What of a message that was counted may be read otherwise now. Thoughts are shown or left out as a step is to think or not, and
/// by who signed them; behind an address there may be another image.
fn uncertain_tokens(message: &Message, images: &ImageTokens) -> u64 {
    let signed: u64 = message.signed.iter().map(|signed| bytes(&signed.block)).sum();
    let thought = message.thought.as_deref().map_or(0, bytes);
    let elsewhere = message.content.iter().map(|part| match part {
        ContentPart::Other(value) => media_bound::tokens_elsewhere(value, images),
        ContentPart::Text(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => 0,
    });
    signed + thought + elsewhere.sum::<u64>()
}

/// What stands beside the messages, the operator's instructions among them.
fn frame_tokens(request: &Request, images: &ImageTokens) -> u64 {
    let system = request.messages.iter().filter(|message| message.role == Role::System);
    let system = system.map(|one| message(one, images));
    let extra: u64 = request.extra.iter().map(|(name, value)| MESSAGE + bytes(name) + json(value)).sum();
    system.sum::<u64>() + tools_and_format(request) + extra + rendered_members(request)
}

/// An upper bound for each text: what a model puts around one is little, unless a member says what.
pub fn embedding_tokens(request: &EmbeddingRequest) -> Tokens {
    let members: u64 = request.unknown_members.iter().map(|(name, value)| bytes(name) + json(value)).sum();
    let each = |length: usize| MESSAGE + members + u64::try_from(length).unwrap_or(u64::MAX);
    Tokens(match &request.inputs {
        EmbeddingInputs::Texts(texts) => texts.iter().map(|text| each(text.len())).sum(),
        EmbeddingInputs::Tokens(lists) => lists.iter().map(|ids| each(ids.len())).sum(),
    })
}

fn message(message: &Message, images: &ImageTokens) -> u64 {
    let content: u64 = message.content.iter().map(|one| part(one, images)).sum();
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| MESSAGE + bytes(&call.id) + bytes(&call.name) + spaced_len(&call.arguments))
        .sum();
    let signed: u64 = message.signed.iter().map(|signed| bytes(&signed.block)).sum();
    let rest = [&message.thought, &message.tool_call_id, &message.name];
    let is_media = |part: &ContentPart| matches!(part, ContentPart::Other(_));
    let id = message.tool_call_id.as_deref().map_or(0, bytes);
    let moved =
        if message.role == Role::Tool && message.content.iter().any(is_media) { MOVED + id } else { 0 };
    let passed = message.unknown_members.iter();
    let passed: u64 = passed.map(|(name, value)| MESSAGE + bytes(name) + json(value)).sum();
    MESSAGE
        + content
        + apart(message)
        + moved
        + passed
        + calls
        + signed
        + rest.into_iter().flatten().map(|text| bytes(text)).sum::<u64>()
}

/// What stands between the texts that the caller wrote apart. Some providers are sent each of a turn's as a message of its own.
fn apart(message: &Message) -> u64 {
    let own = message.content.iter().take_while(|part| !matches!(part, ContentPart::AdditionStart { .. }));
    let texts = own.filter(|part| matches!(part, ContentPart::Text(_))).skip(1).count();
    let each = if message.role == Role::Assistant { MESSAGE } else { PARAGRAPH };
    u64::try_from(texts).unwrap_or(u64::MAX).saturating_mul(each)
}

fn part(part: &ContentPart, images: &ImageTokens) -> u64 {
    match part {
        ContentPart::Text(text) => bytes(text),
        ContentPart::Other(value) => media_bound::tokens(value, images).unwrap_or_else(|| json(value)),
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => 0,
    }
}

fn json(value: &Value) -> u64 {
    spaced_len(&value.to_string())
}

/// JSON as a template may rewrite it: with a space, or a line's end and its indent, beside every mark.
fn spaced_len(text: &str) -> u64 {
    let marks = text.bytes().filter(|byte| b",:{}[]".contains(byte)).count();
    bytes(text).saturating_add(u64::try_from(marks).unwrap_or(u64::MAX).saturating_mul(2))
}

fn bytes(text: &str) -> u64 {
    text.len().try_into().unwrap_or(u64::MAX)
}

/// The most of what an upstream reports of a prompt that is believed, given an upper bound of what it was sent. Providers add
/// instructions of their own and count images by other rules; a counter that ran below zero, or over, has another size.
pub fn believable(bound: Tokens) -> Tokens {
    /// What is added whatever the prompt is.
    const ADDED_MAX: u64 = 1 << 16;
    Tokens(bound.0.saturating_mul(4).saturating_add(ADDED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::ToolCall;

    fn check(content: Vec<ContentPart>, least: u64, most: u64) {
        let message = Message { content, ..Message::text(Role::User, "") };
        let request = Request::new("m", vec![message]);
        let bound = prompt_tokens(&request, &ImageTokens::default()).0;
        assert!((least..=most).contains(&bound), "{bound} is not within {least}..={most}");
    }

    #[test]
    fn what_sets_texts_apart_is_counted() {
        let bound = |role: Role, parts: usize| {
            let content = vec![ContentPart::Text("a".to_owned()); parts];
            let request = Request::new("m", vec![Message { content, ..Message::text(role, "") }]);
            prompt_tokens(&request, &ImageTokens::default()).0
        };
        assert_eq!(bound(Role::Assistant, 1001) - bound(Role::Assistant, 1), 1000 * (1 + MESSAGE));
        assert_eq!(bound(Role::Tool, 1001) - bound(Role::Tool, 1), 1000 * (1 + PARAGRAPH));
    }

    #[test]
    fn text_costs_at_most_a_token_a_byte() {
        check(vec![ContentPart::Text("x".repeat(1000))], 1000, 1200);
        check(vec![ContentPart::Text("ü".repeat(1000))], 2000, 2200);
    }

    /// A template shows the model what a caller says to it.
    #[test]
    fn members_that_a_template_may_render_count_and_grammars_do_not() {
        let asked = |name: &str| {
            let mut request = Request::new("m", vec![Message::text(Role::User, "?")]);
            request.unknown_members.insert(name.to_owned(), Value::from("x".repeat(10_000)));
            prompt_tokens(&request, &ImageTokens::default()).0
        };
        for rendered in ["documents", "chat_template_kwargs", "surprise"] {
            assert!((10_000..11_000).contains(&asked(rendered)), "{rendered}: {}", asked(rendered));
        }
        assert!(asked("grammar") < 1_000);
    }

    #[test]
    fn what_was_called_before_is_declared_where_no_tool_is() {
        let call = |name: &str| {
            let name = name.to_owned();
            let call = ToolCall { id: String::new(), name, arguments: String::new() };
            Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") }
        };
        let asked = |calls: &[&str]| Request::new("m", calls.iter().map(|name| call(name)).collect());
        let images = ImageTokens::default();
        let bound = |calls: &[&str]| prompt_tokens(&asked(calls), &images).0;
        let (none, both) = (bound(&[]), bound(&["search", "browse", "search"]));
        let messages = 3 * (2 * MESSAGE + 6);
        assert_eq!(both - none, messages + TOOLS + 2 * (CALLED_TOOL + 6));
        let (before, now) = (asked(&["search"]), asked(&["search", "browse"]));
        let more =
            extended_prompt_tokens(Tokens(100), &before.messages, &now, PromptFrame::Counted, &images).0;
        assert_eq!(more - 100 - CONVERSATION, 2 * MESSAGE + 6 + TOOLS + 2 * (CALLED_TOOL + 6));
    }
}
