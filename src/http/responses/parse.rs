//! Reads a request for a response, all of it but the conversation.

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::http::budget::{BudgetParser, EffortTable, from_metadata, read_headers};
use crate::http::error::{ApiError, codes};
use crate::http::fields::Fields;
use crate::http::{metadata, openai, unknown_members};
use stint_types::chat::{Request, SamplingOptions};
use stint_types::units::{ConversationId, RequestId};

use super::choice::ResponsesToolChoice;
use super::errors::{conversation_not_found, response_not_found};
use super::id::request_id_of;
use super::output::{ResponsesRenderOptions, ResponsesThoughts};
use super::tool_set::ToolSet;
use super::{budget, choice, compaction, echo, form, tools};

/// What was asked for. The conversation is not in the request yet: some of it may lie in the store.
#[derive(Debug)]
pub(super) struct ResponsesRequest {
    /// All but its messages, its tools and which of them to call.
    pub(super) request: Request,
    /// The system's words.
    pub(super) instructions: Option<String>,
    /// The items that were sent.
    pub(super) input: Vec<Value>,
    /// The response that this one continues.
    pub(super) previous: Option<RequestId>,
    /// The conversation that this one continues; never beside a response.
    pub(super) conversation: Option<ConversationId>,
    /// Whether it is to be had again.
    pub(super) store: bool,
    /// Events as they come, or one object.
    pub(super) stream: bool,
    /// The tools that the request itself offers; items may offer more.
    pub(super) tool_set: ToolSet,
    /// Which of all that is offered must or may be called.
    pub(super) choice: Option<ResponsesToolChoice>,
    /// How the answer is to look.
    pub(super) options: ResponsesRenderOptions,
    /// What the response repeats of the request.
    pub(super) echo: Map<String, Value>,
    /// What users said, where the answer is nothing but a compaction. It is filled in with what the request continues.
    pub(super) users_items: Option<Vec<Value>>,
}

/// Members that some upstreams understand and that do not change the bill.
const PASSED: &[&str] = &[
    "frequency_penalty",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "safety_identifier",
    "user",
];

/// What clients send by themselves and what changes nothing in an answer: marks for a provider's cache, and who they are.
const IGNORED: &[&str] = &["client_metadata", "prompt_cache_retention", "prompt_cache_options"];

/// What asks for the chances of the answer's tokens.
const LOGPROBS: &str = "message.output_text.logprobs";

/// What may be asked for beside: of these only the first two ever come.
const INCLUDABLE: &[&str] = &[
    "reasoning.encrypted_content",
    LOGPROBS,
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// Reads the members of a body that need not have any input, and the headers.
///
/// # Errors
/// As [`read`].
pub(super) fn read_with_input(
    mut members: Map<String, Value>,
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<ResponsesRequest, ApiError> {
    if members.get("input").is_none_or(Value::is_null) {
        members.insert("input".to_owned(), json!([]));
    }
    read(members, headers, efforts)
}

/// Reads the members of the body, and the headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    members: Map<String, Value>,
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<ResponsesRequest, ApiError> {
    let echo = echo::request_members(&members);
    let mut fields = Fields::from_body(members);
    let mut budgets = budget::parser(efforts);
    let model = budgets.suffix(&fields.model()?)?;
    let summary = reads_summary(&mut fields, &mut budgets)?;
    budget::read(&mut budgets, &mut fields)?;
    read_headers(&mut budgets, headers)?;
    let thoughts = match (budgets.thoughts, summary) {
        (false, _) => ResponsesThoughts::Hidden,
        (true, true) => ResponsesThoughts::Summary,
        (true, false) => ResponsesThoughts::Content,
    };
    check_unsupported(&mut fields)?;
    let logprobs = logprobs(&mut fields)?;
    let (offer, choice) = (tools::read(&mut fields)?, choice::read(&mut fields)?);
    let (response_format, verbosity) = form::read(&mut fields)?;
    let stream = fields.boolean("stream")?.unwrap_or(false);
    stream_options(&mut fields)?;
    let mut extra = extra(&mut fields)?;
    budgets.name_episode(from_metadata(&extra)?);
    extra.extend(verbosity.map(|verbosity| ("verbosity".to_owned(), verbosity.into())));
    let (previous, conversation) = previous_ids(&mut fields)?;
    // What it continues may have brought tools of its own.
    let is_whole = previous.is_none() && conversation.is_none();
    let mut budget = budgets.finish_with_tools(if is_whole { offer.listed() } else { &[] })?;
    budget.episode_limits.tools.shorten();
    let mut asked = ResponsesRequest {
        instructions: fields.text("instructions")?,
        input: input(&mut fields)?,
        previous,
        conversation,
        store: fields.boolean("store")?.unwrap_or(true),
        stream,
        tool_set: offer,
        choice,
        options: ResponsesRenderOptions { thoughts, ..ResponsesRenderOptions::default() },
        echo,
        users_items: None,
        request: Request {
            sampling: sampling(&mut fields)?,
            response_format,
            extra,
            streams: stream,
            logprobs,
            budget,
            ..Request::new(model, Vec::new())
        },
    };
    unknown_members::reject_chat_members(&mut fields)?;
    asked.request.unknown_members = unknown_members::take_unknown(&mut fields)?;
    asked.options.is_compaction = asked.input.last().is_some_and(compaction::is_trigger);
    Ok(asked)
}

/// `reasoning`: how deep to think; and whether thoughts are shown as a summary, which is what many clients show.
fn reads_summary(fields: &mut Fields, budgets: &mut BudgetParser<'_>) -> Result<bool, ApiError> {
    let Some(mut reasoning) = fields.fields("reasoning")? else { return Ok(false) };
    let mut asked = false;
    for key in ["summary", "generate_summary"] {
        let name = reasoning.full_name(key);
        match reasoning.text(key)?.as_deref() {
            None => {}
            Some("auto" | "concise" | "detailed") => asked = true,
            // Some clients have a word for none; VS Code's is the latter.
            Some("none" | "off") => {}
            Some(_) => return Err(ApiError::invalid(Some(&name), "must be auto, concise or detailed")),
        }
    }
    if !matches!(reasoning.text("mode")?.as_deref(), None | Some("standard")) {
        return Err(ApiError::invalid(Some(&reasoning.full_name("mode")), "may only be standard here"));
    }
    reasoning.take_all(&["context"]);
    openai::read_reasoning(budgets, reasoning)?;
    Ok(asked)
}

/// What is not offered, each with what to do instead.
fn check_unsupported(fields: &mut Fields) -> Result<(), ApiError> {
    let is_there = |value: &Value| *value != json!([]) && *value != json!({});
    for (param, why) in [
        ("prompt", "is not offered: there are no prompts here; send instructions and input"),
        ("context_management", "is not offered: nothing is left out of what you send; shorten the input"),
        ("moderation", "is not offered; leave it out"),
    ] {
        if fields.take(param).is_some_and(|value| is_there(&value)) {
            return Err(ApiError::invalid(Some(param), why));
        }
    }
    if fields.boolean("background")? == Some(true) {
        let why = "may only be false here: an answer is only given to the call that waits for it; use stream";
        return Err(ApiError::invalid(Some("background"), why));
    }
    if !matches!(fields.text("truncation")?.as_deref(), None | Some("disabled")) {
        let why = "may only be disabled here: nothing is left out of what you send";
        return Err(ApiError::invalid(Some("truncation"), why));
    }
    if !matches!(fields.text("service_tier")?.as_deref(), None | Some("auto" | "default")) {
        return Err(ApiError::invalid(Some("service_tier"), "may only be auto or default here"));
    }
    Ok(())
}

/// Whether the chances of tokens are wanted, and how many others beside each.
fn logprobs(fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    let included = fields.list("include")?.unwrap_or_default();
    let is_known = |asked: &Value| asked.as_str().is_some_and(|asked| INCLUDABLE.contains(&asked));
    if let Some(at) = included.iter().position(|asked| !is_known(asked)) {
        let must = format!("must be one of {}", INCLUDABLE.join(", "));
        return Err(ApiError::invalid(Some(&format!("include[{at}]")), must));
    }
    let top = fields.integer("top_logprobs")?.unwrap_or(0);
    let most = openai::TOP_LOGPROBS_MAX;
    let Some(top) = u32::try_from(top).ok().filter(|top| *top <= most) else {
        return Err(ApiError::invalid(Some("top_logprobs"), format!("must be at most {most}")));
    };
    Ok((top > 0 || included.iter().any(|asked| asked == LOGPROBS)).then_some(top))
}

fn stream_options(fields: &mut Fields) -> Result<(), ApiError> {
    let Some(mut options) = fields.fields("stream_options")? else { return Ok(()) };
    // Padding is for networks that others listen to; there is none here.
    options.boolean("include_obfuscation")?;
    options.boolean("include_usage")?;
    options.finish()
}

fn extra(fields: &mut Fields) -> Result<Map<String, Value>, ApiError> {
    fields.take_all(IGNORED);
    let extra = fields.take_all(PASSED);
    metadata::check_in(&extra)?;
    if extra.get("parallel_tool_calls").is_some_and(|flag| !flag.is_boolean()) {
        return Err(ApiError::invalid(Some("parallel_tool_calls"), "must be true or false"));
    }
    Ok(extra)
}

fn input(fields: &mut Fields) -> Result<Vec<Value>, ApiError> {
    let must = "a string or a list of items";
    match fields.take("input") {
        Some(text @ Value::String(_)) => {
            let mut part = json!({ "type": "input_text" });
            // Moved, since it may be long.
            part["text"] = text;
            let mut message = json!({ "type": "message", "role": "user" });
            message["content"] = Value::Array(vec![part]);
            Ok(vec![message])
        }
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(ApiError::invalid(Some("input"), format!("must be {must}"))),
        None => Err(ApiError::missing("input", must)),
    }
}

/// What it continues: a response or a conversation.
fn previous_ids(fields: &mut Fields) -> Result<(Option<RequestId>, Option<ConversationId>), ApiError> {
    let (previous, conversation) = (fields.text("previous_response_id")?, conversation(fields)?);
    if previous.is_some() && conversation.is_some() {
        let why =
            "a conversation has all that was said in it: send either previous_response_id or conversation";
        return Err(ApiError::invalid(None, why).with_code(codes::MUTUALLY_EXCLUSIVE_PARAMETERS));
    }
    let previous = previous.map(|name| request_id_of(&name).ok_or_else(response_not_found)).transpose()?;
    let conversation = conversation.map(|id| id.parse().map_err(|_| conversation_not_found())).transpose()?;
    Ok((previous, conversation))
}

/// A conversation, by its id or as an object with it.
fn conversation(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    match fields.take("conversation") {
        None => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(Value::Object(members)) => {
            let mut named = Fields::from_value("conversation", Value::Object(members))?;
            let id = named.require("id")?;
            named.finish()?;
            Ok(Some(id))
        }
        Some(_) => Err(ApiError::invalid(Some("conversation"), "must be an id, or an object with it")),
    }
}

fn sampling(fields: &mut Fields) -> Result<SamplingOptions, ApiError> {
    Ok(SamplingOptions {
        temperature: fields.fraction("temperature", 2.0)?,
        top_p: fields.fraction("top_p", 1.0)?,
        ..SamplingOptions::default()
    })
}
