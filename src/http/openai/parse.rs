//! Reads a chat completion's members, all but budgets, into the canonical request.

use serde_json::{Map, Value, json};

use crate::http::error::ApiError;
use crate::http::fields::{self, Fields, STOP_BYTES_MAX};
use crate::http::tool_pairing::{self, TurnGrouping, UnpairedTool};
use crate::http::{cache_control, documents, hosted_tools, metadata, signed, unknown_members};
use stint_prompt::image_type;
use stint_types::chat::{
    ContentPart, MESSAGE_MEMBERS, Message, Request, Role, SamplingOptions, SignedThought, Tool, ToolCall,
};

use super::checks::STOPS_MAX;
use super::prefill;

/// What the caller wants of the wire, apart from the answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct OpenAiDeliveryOptions {
    /// Events as they come, or one object.
    pub(super) stream: bool,
    /// A last chunk with usage.
    pub(super) include_usage: bool,
    /// Thoughts beside the answer.
    pub(super) thoughts: bool,
}

/// Members that some upstreams understand and that do not change the bill.
const PASSED: &[&str] = &[
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "user",
    "verbosity",
];

/// What clients send by themselves and what changes nothing in an answer: marks for a provider's cache, a guess at the answer,
/// which would only make it quicker, and `OpenRouter`'s wish for usage, which every answer has.
const IGNORED: &[&str] = &["prompt_cache_retention", "prompt_cache_options", "prediction", "usage"];

/// So many other tokens may be listed beside each; OpenAI's own limit.
pub(in crate::http) const TOP_LOGPROBS_MAX: u32 = 20;

/// What is not offered, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("functions", "is not offered: it is the older name of tools; send those"),
    ("function_call", "is not offered: it is the older name of tool_choice; send that"),
    ("web_search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("audio", "is not offered: answers are text"),
    ("moderation", "is not offered; leave it out"),
];

/// What our own answers, and those of others, carry besides, and so what clients send back, beside the
/// [members](MESSAGE_MEMBERS) of a provider's message. In `thinking_blocks` `LiteLLM` says once more what it has read; the last two are
/// VS Code's, of what it had from Azure.
const ECHOED: &[&str] = &["annotations", "function_call", "thinking_blocks", "cot_id", "cot_summary"];

/// The members of a body that are not about budgets; those were taken before.
pub(super) fn request(
    fields: &mut Fields,
    model: String,
) -> Result<(Request, OpenAiDeliveryOptions), ApiError> {
    let (mut messages, continues_last) = messages(fields)?;
    cache_control::take_from_request(fields, &mut messages)?;
    let stream = fields.boolean("stream")?.unwrap_or(false);
    let choices = choices(fields)?;
    best_of(fields, choices)?;
    let wanted =
        OpenAiDeliveryOptions { stream, include_usage: include_usage(fields, stream)?, thoughts: true };
    let request = Request {
        continues_last,
        sampling: sampling(fields)?,
        choices,
        logprobs: logprobs(fields)?,
        tools: tools(fields)?,
        tool_choice: fields.take("tool_choice"),
        response_format: fields.take("response_format"),
        extra: passed_members(fields)?,
        streams: stream,
        ..Request::new(model, messages)
    };
    Ok((request, wanted))
}

pub(super) fn choices(fields: &mut Fields) -> Result<u32, ApiError> {
    match fields.integer("n")?.unwrap_or(1) {
        0 => Err(ApiError::invalid(Some("n"), "must be at least 1")),
        // The gateway refuses all that are too many, and says how many there may be.
        n => Ok(u32::try_from(n).unwrap_or(u32::MAX)),
    }
}

/// Whether a stream ends with a chunk of usage: by OpenAI's member, or by that of `OpenRouter`, `usage: {"include": true}`. Read before
/// [`passed_members`], which leaves out what is ignored.
pub(super) fn include_usage(fields: &mut Fields, stream: bool) -> Result<bool, ApiError> {
    let is_included = fields.peek("usage").is_some_and(|usage| usage["include"] == true);
    let Some(mut options) = fields.fields("stream_options")? else { return Ok(is_included) };
    if !stream {
        return Err(ApiError::invalid(
            Some("stream_options"),
            "is for streams; send stream: true, or leave it out",
        ));
    }
    let include = options.boolean("include_usage")?.unwrap_or(false);
    options.boolean("include_obfuscation")?;
    // Benchmarks made for vLLM ask for counts in between, and take those of the end as well.
    options.boolean("continuous_usage_stats")?;
    options.finish()?;
    Ok(include || is_included)
}

pub(super) fn sampling(fields: &mut Fields) -> Result<SamplingOptions, ApiError> {
    // How vLLM and SGLang say that there is no such limit.
    if fields.peek("top_k").and_then(Value::as_i64) == Some(-1) {
        fields.take("top_k");
    }
    let top_k = fields.integer("top_k")?;
    Ok(SamplingOptions {
        temperature: fields.fraction("temperature", 2.0)?,
        top_p: fields.fraction("top_p", 1.0)?,
        top_k: top_k.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        seed: seed(fields)?,
        stop: stop(fields)?,
    })
}

/// OpenAI's seeds are signed.
fn seed(fields: &mut Fields) -> Result<Option<u64>, ApiError> {
    let Some(value) = fields.take("seed") else { return Ok(None) };
    let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
    seed.map(Some).ok_or_else(|| ApiError::invalid(Some("seed"), "must be a whole number"))
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let wrong = || {
        let must = format!(
            "must be a string or a list of up to {STOPS_MAX} strings, each of {STOP_BYTES_MAX} bytes at most"
        );
        ApiError::invalid(Some("stop"), must)
    };
    let list = match fields.take("stop") {
        None => Vec::new(),
        Some(text @ Value::String(_)) => vec![text],
        Some(Value::Array(list)) if list.len() <= STOPS_MAX => list,
        Some(_) => return Err(wrong()),
    };
    fields::stop_texts(&list).ok_or_else(wrong)
}

pub(super) fn passed_members(fields: &mut Fields) -> Result<Map<String, Value>, ApiError> {
    // A tier, storage or built-in tools change what is billed or kept: not without the operator's word.
    if !matches!(fields.text("service_tier")?.as_deref(), None | Some("auto" | "default")) {
        return Err(ApiError::invalid(Some("service_tier"), "may only be auto or default here"));
    }
    if fields.boolean("store")? == Some(true) {
        return Err(ApiError::invalid(Some("store"), "is not offered: answers are not stored"));
    }
    if let Some((param, why)) = REFUSED.iter().find(|(param, _)| fields.take(param).is_some()) {
        return Err(ApiError::invalid(Some(param), *why));
    }
    if fields.take("modalities").is_some_and(|asked| asked != json!(["text"])) {
        return Err(ApiError::invalid(Some("modalities"), "may only be [\"text\"] here"));
    }
    fields.take_all(IGNORED);
    let passed = fields.take_all(PASSED);
    metadata::check_in(&passed)?;
    Ok(passed)
}

/// Whether the chances of tokens are wanted, and how many others beside each; llama.cpp has one word for both.
fn logprobs(fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    let wanted = fields.boolean("logprobs")?.unwrap_or(false);
    let (top, probs) =
        (fields.integer("top_logprobs")?, fields.integer("n_probs")?.filter(|count| *count > 0));
    if top.is_some_and(|top| top > 0) && !wanted {
        return Err(ApiError::invalid(Some("top_logprobs"), "needs logprobs: true"));
    }
    let most = u64::from(TOP_LOGPROBS_MAX);
    for (param, count) in [("top_logprobs", top), ("n_probs", probs)] {
        if count.is_some_and(|count| count > most) {
            return Err(ApiError::invalid(Some(param), format!("must be at most {most}")));
        }
    }
    let count = top.or(probs).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    Ok((wanted || probs.is_some()).then_some(count))
}

/// The best of more than are wanted would have to be judged.
pub(super) fn best_of(fields: &mut Fields, choices: u32) -> Result<(), ApiError> {
    match fields.integer("best_of")? {
        Some(best) if best != u64::from(choices) => {
            Err(ApiError::invalid(Some("best_of"), "may only be n here: every answer is delivered"))
        }
        _ => Ok(()),
    }
}

fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools")?.unwrap_or_default();
    list.into_iter().enumerate().map(|(at, declaration)| tool(at, declaration)).collect()
}

fn tool(at: usize, mut declaration: Value) -> Result<Tool, ApiError> {
    let marked = cache_control::take_from_tool(&format!("tools[{at}]"), &mut declaration)?;
    if declaration["type"] != "function" {
        let param = format!("tools[{at}].type");
        let why = match declaration["type"].as_str() {
            Some("custom") => {
                "must be \"function\" here: custom tools are taken on /v1/responses only".to_owned()
            }
            Some(kind) => hosted_tools::not_offered("must be \"function\"", kind),
            None => "must be \"function\"".to_owned(),
        };
        return Err(ApiError::invalid(Some(&param), why));
    }
    match declaration["function"]["name"].as_str() {
        Some(name) => {
            let name = name.to_owned();
            Ok(Tool { cache_breakpoint: marked, ..Tool::new(name, declaration) })
        }
        None => Err(ApiError::invalid(Some(&format!("tools[{at}].function.name")), "must be a string")),
    }
}

/// The messages, and whether the last one is to be continued.
fn messages(fields: &mut Fields) -> Result<(Vec<Message>, bool), ApiError> {
    let must = "a list with at least one message";
    let mut list = fields.list("messages")?.ok_or_else(|| ApiError::missing("messages", must))?;
    if list.is_empty() {
        return Err(ApiError::invalid(Some("messages"), format!("must be {must}")));
    }
    let continues_last = prefill::take(fields, &mut list)?;
    let read = |(at, value)| message(format!("messages[{at}]"), value);
    let messages: Vec<Message> = list.into_iter().enumerate().map(read).collect::<Result<_, ApiError>>()?;
    tool_pairing::check(&messages, TurnGrouping::PerMessage).map_err(|unpaired| unpaired_error(&unpaired))?;
    Ok((messages, continues_last))
}

/// OpenAI refuses such conversations too.
fn unpaired_error(unpaired: &UnpairedTool<'_>) -> ApiError {
    let (at, what) = match unpaired {
        UnpairedTool::Call(at, ToolCall { id, name, .. }) => {
            let what = format!(
                "calls {name} ({id}), and no result follows: send a tool message with that tool_call_id right after it, \
                 or leave the call out"
            );
            (at, what)
        }
        UnpairedTool::Result(at, id) => {
            let what = format!(
                "is the result of {id}, which the assistant's message before it did not call, or which has its result: \
                 send that message too, or leave the result out"
            );
            (at, what)
        }
    };
    ApiError::invalid(Some(&format!("messages[{at}]")), what)
}

fn message(path: String, value: Value) -> Result<Message, ApiError> {
    let mut fields = Fields::from_value(path, value)?;
    let role = match fields.text("role")?.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => {
            let must = "must be system, developer, user, assistant or tool";
            return Err(ApiError::invalid(Some(&fields.full_name("role")), must));
        }
    };
    let (tool_calls, extras) = tool_calls(&mut fields)?;
    let mut content = content(&mut fields)?;
    let is_said = |part: &ContentPart| !matches!(part, ContentPart::Text(text) if text.is_empty());
    let refusal = fields.text("refusal")?.filter(|_| !content.iter().any(is_said));
    content.extend(refusal.map(ContentPart::Text));
    if content.is_empty() && tool_calls.is_empty() && role != Role::Assistant {
        return Err(ApiError::invalid(Some(&fields.full_name("content")), "is missing"));
    }
    let details = fields.list("reasoning_details")?.unwrap_or_default();
    let (thought, repeated) = (fields.text("reasoning_content")?, fields.text("reasoning")?);
    // Clients may put words of their own in place of what they cannot show.
    let thought = thought.or(signed::details_text(&details)).or(repeated);
    fields.take_all(ECHOED);
    // What a model made comes back in its own messages.
    if role == Role::Assistant {
        fields.take_all(&MESSAGE_MEMBERS);
    }
    let mut signed = signed::read_details(&details);
    signed.extend(extras);
    let mut message = Message {
        role,
        content,
        thought,
        signed,
        tool_calls,
        tool_call_id: match role {
            Role::Tool => Some(fields.require("tool_call_id")?),
            _ => fields.text("tool_call_id")?,
        },
        is_error: false,
        name: fields.text("name")?,
        phases: Vec::new(),
        unknown_members: Map::new(),
    };
    // A mark of the whole message is that of its last part.
    if let Some(keep) = cache_control::take_any(&mut fields)? {
        cache_control::add_mark(&mut message.content, keep);
    }
    message.unknown_members = unknown_members::take_of_message(&mut fields)?;
    Ok(message)
}

fn content(fields: &mut Fields) -> Result<Vec<ContentPart>, ApiError> {
    match fields.take("content") {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![ContentPart::Text(text)]),
        Some(Value::Array(parts)) => {
            let (path, mut content) = (fields.full_name("content"), Vec::new());
            for (at, part) in parts.into_iter().enumerate() {
                let mut fields = Fields::from_value(format!("{path}[{at}]"), part)?;
                content.push(content_part(&mut fields)?);
                content.extend(cache_control::take_any(&mut fields)?.map(ContentPart::CacheBreakpoint));
            }
            Ok(content)
        }
        Some(_) => {
            let path = fields.full_name("content");
            Err(ApiError::invalid(Some(&path), "must be a string or a list of parts"))
        }
    }
}

/// Only kinds for which a prompt's tokens have a bound: a video by its address may be any number of them.
fn content_part(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    match fields.text("type")?.as_deref() {
        Some("text") => Ok(ContentPart::Text(fields.require("text")?)),
        Some("refusal") => Ok(ContentPart::Text(fields.require("refusal")?)),
        Some("image_url") => image(fields),
        Some("input_audio") => audio(fields),
        Some("file") => {
            let mut file = fields.require_fields("file")?;
            let part = documents::take(&mut file)?;
            file.finish()?;
            Ok(part)
        }
        _ => {
            let must = "must be text, image_url, input_audio or file";
            Err(ApiError::invalid(Some(&fields.full_name("type")), must))
        }
    }
}

/// An image by its address, or in it.
fn image(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    let mut image = fields.require_fields("image_url")?;
    let mut inner = image.take_all(&["detail"]);
    // VS Code says it once more beside the data.
    image.take_all(&["media_type"]);
    inner.insert("url".into(), image_type::with_media_type(image.require("url")?).into());
    image.finish()?;
    Ok(ContentPart::Other(json!({ "type": "image_url", "image_url": inner })))
}

/// Sound, in base 64.
fn audio(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    let mut audio = fields.require_fields("input_audio")?;
    let (data, format) = (audio.require("data")?, audio.require("format")?);
    audio.finish()?;
    Ok(ContentPart::Other(
        json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }),
    ))
}

/// The calls, and what their provider added to them and wants back.
fn tool_calls(fields: &mut Fields) -> Result<(Vec<ToolCall>, Vec<SignedThought>), ApiError> {
    let list = fields.list("tool_calls")?.unwrap_or_default();
    let extra = |(at, call): (usize, &Value)| {
        signed::read_call_extra(call["id"].as_str()?, at, call.get("extra_content")?)
    };
    let extras = list.iter().enumerate().filter_map(extra).collect();
    let call = |(at, call): (usize, Value)| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (id, function) = (text(&call["id"]), &call["function"]);
        match (id, text(&function["name"]), text(&function["arguments"])) {
            (Some(id), Some(name), Some(arguments)) => Ok(ToolCall { id, name, arguments }),
            _ => {
                let must = "must have id, function.name and function.arguments, all strings";
                let path = fields.full_name("tool_calls");
                Err(ApiError::invalid(Some(&format!("{path}[{at}]")), must))
            }
        }
    };
    let calls: Vec<ToolCall> = list.into_iter().enumerate().map(call).collect::<Result<_, ApiError>>()?;
    Ok((calls, extras))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_with_usage_by_the_member_of_openai_and_by_that_of_openrouter() {
        let check = |member: &str, value: Value, expected: bool| {
            let messages = json!([{ "role": "user", "content": "hi" }]);
            let mut body = Map::new();
            body.extend([
                ("messages".into(), messages),
                ("stream".into(), true.into()),
                (member.into(), value),
            ]);
            let (_, wanted) = request(&mut Fields::from_body(body), "m".into()).unwrap();
            assert_eq!(wanted.include_usage, expected, "{member}");
        };
        check("stream_options", json!({ "include_usage": true }), true);
        check("stream_options", json!({ "include_usage": true, "continuous_usage_stats": true }), true);
        check("usage", json!({ "include": true }), true);
        check("usage", json!({ "include": false }), false);
        check("user", json!("u"), false);
    }

    #[test]
    fn what_vs_code_adds_to_images_and_thoughts_goes_nowhere() {
        let url = "data:image/png;base64,iVBORw0KGgo=";
        let image = |more: Value| {
            let mut image = json!({ "url": url, "detail": "high" });
            image.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([{ "type": "image_url", "image_url": image }])
        };
        let user = |more: Value| {
            message("messages[0]".into(), json!({ "role": "user", "content": image(more) })).unwrap()
        };
        assert_eq!(user(json!({ "media_type": "image/png" })).content, user(json!({})).content);
        let thought = json!({
            "role": "assistant", "content": "Paris", "cot_id": "rs_1", "cot_summary": "easy",
            "reasoning_content": "easy", "reasoning": "easy",
        });
        let read = message("messages[1]".into(), thought).unwrap();
        assert_eq!(read.thought.as_deref(), Some("easy"));
        assert!(read.unknown_members.is_empty());
    }
}
