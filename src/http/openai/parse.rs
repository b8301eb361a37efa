//! A chat completion as OpenAI's clients ask for it → the canonical request.

use serde_json::{Map, Value, json};

use crate::chat::{Message, Part, Request, Role, Sampling, Tool, ToolCall};
use crate::http::error::Problem;
use crate::http::fields::Fields;
use crate::http::paired::{self, Turns, Unpaired};
use crate::http::{marks, signed};

/// What the caller wants of the wire, apart from the answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Events as they come, or one object.
    pub(crate) stream: bool,
    /// A last chunk with usage.
    pub(crate) include_usage: bool,
    /// Thoughts beside the answer.
    pub(crate) thoughts: bool,
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
/// which would only make it quicker, and `OpenRouter`'s wish for usage, which is told anyway.
const IDLE: &[&str] = &["prompt_cache_retention", "prompt_cache_options", "prediction", "usage"];

/// So many other tokens may be told beside each; OpenAI's own limit.
const TOP_LOGPROBS_MAX: u32 = 20;

/// What is not offered, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("functions", "is not offered: it is the older name of tools; send those"),
    ("function_call", "is not offered: it is the older name of tool_choice; send that"),
    ("web_search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("audio", "is not offered: answers are text"),
    ("moderation", "is not offered; leave it out"),
];

/// What our own answers, and those of others, carry besides, and so what clients send back. The last two are `LiteLLM`'s, which
/// says there once more what it has read.
const CARRIED: &[&str] =
    &["refusal", "annotations", "audio", "function_call", "provider_specific_fields", "thinking_blocks"];

/// The members of a body that are not about budgets; those were taken before.
pub(super) fn request(fields: &mut Fields, model: String) -> Result<(Request, Wanted), Problem> {
    let mut messages = messages(fields)?;
    marks::take_whole(fields, &mut messages)?;
    let stream = fields.flag("stream")?.unwrap_or(false);
    let choices = choices(fields)?;
    best_of(fields, choices)?;
    let request = Request {
        sampling: sampling(fields)?,
        choices,
        logprobs: logprobs(fields)?,
        tools: tools(fields)?,
        tool_choice: fields.take("tool_choice"),
        response_format: fields.take("response_format"),
        extra: extra(fields)?,
        streams: stream,
        ..Request::new(model, messages)
    };
    let wanted = Wanted { stream, include_usage: include_usage(fields)?, thoughts: true };
    Ok((request, wanted))
}

pub(super) fn choices(fields: &mut Fields) -> Result<u32, Problem> {
    let n = fields.whole("n")?.unwrap_or(1);
    u32::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| Problem::invalid(Some("n"), "must be at least 1"))
}

pub(super) fn include_usage(fields: &mut Fields) -> Result<bool, Problem> {
    let Some(mut options) = fields.fields("stream_options")? else { return Ok(false) };
    let include = options.flag("include_usage")?.unwrap_or(false);
    options.flag("include_obfuscation")?;
    options.end()?;
    Ok(include)
}

pub(super) fn sampling(fields: &mut Fields) -> Result<Sampling, Problem> {
    let top_k = fields.whole("top_k")?;
    Ok(Sampling {
        temperature: fields.number("temperature", 0.0, 2.0)?.map(narrow),
        top_p: fields.number("top_p", 0.0, 1.0)?.map(narrow),
        top_k: top_k.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        seed: seed(fields)?,
        stop: stop(fields)?,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "samplers work in single precision")]
fn narrow(number: f64) -> f32 {
    number as f32
}

/// OpenAI's seeds are signed.
fn seed(fields: &mut Fields) -> Result<Option<u64>, Problem> {
    let Some(value) = fields.take("seed") else { return Ok(None) };
    let seed = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned));
    seed.map(Some).ok_or_else(|| Problem::invalid(Some("seed"), "must be a whole number"))
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, Problem> {
    let wrong = || Problem::invalid(Some("stop"), "must be a string or a list of up to 16 strings");
    match fields.take("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) if list.len() <= 16 => {
            list.into_iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

pub(super) fn extra(fields: &mut Fields) -> Result<Map<String, Value>, Problem> {
    // A tier, storage or built-in tools change what is billed or kept: not without the operator's word.
    if !matches!(fields.text("service_tier")?.as_deref(), None | Some("auto" | "default")) {
        return Err(Problem::invalid(Some("service_tier"), "may only be auto or default here"));
    }
    if fields.flag("store")? == Some(true) {
        return Err(Problem::invalid(Some("store"), "is not offered: answers are not kept"));
    }
    if let Some((param, why)) = REFUSED.iter().find(|(param, _)| fields.take(param).is_some()) {
        return Err(Problem::invalid(Some(param), *why));
    }
    if fields.take("modalities").is_some_and(|asked| asked != json!(["text"])) {
        return Err(Problem::invalid(Some("modalities"), "may only be [\"text\"] here"));
    }
    fields.pass(IDLE);
    Ok(fields.pass(PASSED))
}

/// Whether the chances of tokens are wanted, and how many others beside each; llama.cpp has one word for both.
fn logprobs(fields: &mut Fields) -> Result<Option<u32>, Problem> {
    let wanted = fields.flag("logprobs")?.unwrap_or(false);
    let (top, probs) = (fields.whole("top_logprobs")?, fields.whole("n_probs")?.filter(|count| *count > 0));
    if top.is_some_and(|top| top > 0) && !wanted {
        return Err(Problem::invalid(Some("top_logprobs"), "needs logprobs: true"));
    }
    let most = u64::from(TOP_LOGPROBS_MAX);
    for (param, count) in [("top_logprobs", top), ("n_probs", probs)] {
        if count.is_some_and(|count| count > most) {
            return Err(Problem::invalid(Some(param), format!("must be at most {most}")));
        }
    }
    let count = top.or(probs).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    Ok((wanted || probs.is_some()).then_some(count))
}

/// The best of more than are wanted would have to be judged.
pub(super) fn best_of(fields: &mut Fields, choices: u32) -> Result<(), Problem> {
    match fields.whole("best_of")? {
        Some(best) if best != u64::from(choices) => {
            Err(Problem::invalid(Some("best_of"), "may only be n here: every answer is delivered"))
        }
        _ => Ok(()),
    }
}

fn tools(fields: &mut Fields) -> Result<Vec<Tool>, Problem> {
    let list = fields.list("tools")?.unwrap_or_default();
    list.into_iter().enumerate().map(|(at, declaration)| tool(at, declaration)).collect()
}

fn tool(at: usize, mut declaration: Value) -> Result<Tool, Problem> {
    let marked = marks::take_declared(&format!("tools[{at}]"), &mut declaration)?;
    if declaration["type"] != "function" {
        let param = format!("tools[{at}].type");
        return Err(Problem::invalid(Some(&param), "must be \"function\": built-in tools are not offered"));
    }
    match declaration["function"]["name"].as_str() {
        Some(name) => Ok(Tool { name: name.to_owned(), declaration, marked }),
        None => Err(Problem::invalid(Some(&format!("tools[{at}].function.name")), "must be a string")),
    }
}

fn messages(fields: &mut Fields) -> Result<Vec<Message>, Problem> {
    let must = "a list with at least one message";
    let list = fields.list("messages")?.ok_or_else(|| Problem::missing("messages", must))?;
    if list.is_empty() {
        return Err(Problem::invalid(Some("messages"), format!("must be {must}")));
    }
    let read = |(at, value)| message(&format!("messages[{at}]"), value);
    let messages: Vec<Message> = list.into_iter().enumerate().map(read).collect::<Result<_, Problem>>()?;
    paired::check(&messages, Turns::Apart).map_err(|unpaired| unanswered(&unpaired))?;
    Ok(messages)
}

/// OpenAI refuses such conversations too.
fn unanswered(unpaired: &Unpaired<'_>) -> Problem {
    let (at, what) = match unpaired {
        Unpaired::Call(at, ToolCall { id, name, .. }) => {
            let what = format!(
                "calls {name} ({id}), and no result follows: send a tool message with that tool_call_id right after it, \
                 or leave the call out"
            );
            (at, what)
        }
        Unpaired::Result(at, id) => {
            let what = format!(
                "is the result of {id}, which the assistant's message before it did not call, or which has its result: \
                 send that message too, or leave the result out"
            );
            (at, what)
        }
    };
    Problem::invalid(Some(&format!("messages[{at}]")), what)
}

fn message(path: &str, value: Value) -> Result<Message, Problem> {
    let mut fields = Fields::of(path, value)?;
    let role = match fields.text("role")?.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => {
            let must = "must be system, developer, user, assistant or tool";
            return Err(Problem::invalid(Some(&fields.name("role")), must));
        }
    };
    let tool_calls = tool_calls(&mut fields)?;
    let content = content(&mut fields)?;
    if content.is_empty() && tool_calls.is_empty() && role != Role::Assistant {
        return Err(Problem::invalid(Some(&fields.name("content")), "is missing"));
    }
    let thought = fields.text("reasoning_content")?;
    let thought = thought.or(fields.text("reasoning")?);
    fields.pass(CARRIED);
    let message = Message {
        role,
        content,
        thought,
        signed: signed::read(&fields.list("reasoning_details")?.unwrap_or_default()),
        tool_calls,
        tool_call_id: match role {
            Role::Tool => Some(fields.need("tool_call_id")?),
            _ => fields.text("tool_call_id")?,
        },
        name: fields.text("name")?,
    };
    fields.end()?;
    Ok(message)
}

fn content(fields: &mut Fields) -> Result<Vec<Part>, Problem> {
    let path = fields.name("content");
    match fields.take("content") {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::Text(text)]),
        Some(Value::Array(parts)) => {
            let mut content = Vec::new();
            for (at, part) in parts.into_iter().enumerate() {
                let mut fields = Fields::of(&format!("{path}[{at}]"), part)?;
                content.push(content_part(&mut fields)?);
                content.extend(marks::take(&mut fields)?.map(Part::Mark));
            }
            Ok(content)
        }
        Some(_) => Err(Problem::invalid(Some(&path), "must be a string or a list of parts")),
    }
}

/// Only kinds for which a prompt's tokens have a bound: a file or a video by its address may be any number of them.
fn content_part(fields: &mut Fields) -> Result<Part, Problem> {
    match fields.text("type")?.as_deref() {
        Some("text") => Ok(Part::Text(fields.need("text")?)),
        Some("refusal") => Ok(Part::Text(fields.need("refusal")?)),
        Some("image_url") => image(fields),
        Some("input_audio") => audio(fields),
        _ => {
            let must = "must be text, image_url or input_audio";
            Err(Problem::invalid(Some(&fields.name("type")), must))
        }
    }
}

/// An image by its address, or in it.
fn image(fields: &mut Fields) -> Result<Part, Problem> {
    let mut image = fields.need_fields("image_url")?;
    let mut inner = image.pass(&["detail"]);
    inner.insert("url".into(), image.need("url")?.into());
    image.end()?;
    Ok(Part::Other(json!({ "type": "image_url", "image_url": inner })))
}

/// Sound, in base 64.
fn audio(fields: &mut Fields) -> Result<Part, Problem> {
    let mut audio = fields.need_fields("input_audio")?;
    let (data, format) = (audio.need("data")?, audio.need("format")?);
    audio.end()?;
    Ok(Part::Other(json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })))
}

fn tool_calls(fields: &mut Fields) -> Result<Vec<ToolCall>, Problem> {
    let path = fields.name("tool_calls");
    let list = fields.list("tool_calls")?.unwrap_or_default();
    let call = |(at, call): (usize, Value)| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (id, function) = (text(&call["id"]), &call["function"]);
        match (id, text(&function["name"]), text(&function["arguments"])) {
            (Some(id), Some(name), Some(arguments)) => Ok(ToolCall { id, name, arguments }),
            _ => {
                let must = "must have id, function.name and function.arguments, all strings";
                Err(Problem::invalid(Some(&format!("{path}[{at}]")), must))
            }
        }
    };
    list.into_iter().enumerate().map(call).collect()
}
