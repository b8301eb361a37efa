//! Anthropic's dialect: Messages in and out, so that its SDK and the agents built on it work unchanged.

mod blocks;
mod budget;
mod conversation;
mod errors;
pub(super) mod messages;
pub(super) mod models;
mod parse;
mod render;
mod stream;
mod thoughts;
mod vendor;

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use stint_types::chat::Request;

use super::budget::{EffortTable, read_headers};
use super::error::ApiError;
use super::fields::Fields;
use super::{cache_control, unknown_members};

pub(super) use budget::read_thinking;
pub(super) use errors::{is_spoken, reword, rewrite_errors};
use thoughts::AnthropicThoughts;

/// What the caller wants of the wire, apart from the answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnthropicDeliveryOptions {
    /// Events as they come, or one object.
    pub(super) stream: bool,
    /// Thoughts beside the answer.
    thoughts: AnthropicThoughts,
}

/// Reads the members of the body of a request for a message, and its headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    members: Map<String, Value>,
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<(Request, AnthropicDeliveryOptions), ApiError> {
    budget::check_thinking(&members, is_interleaved(headers))?;
    let mut fields = Fields::from_body(members);
    let mut budgets = budget::parser(efforts);
    let model = budgets.suffix(&fields.model()?)?;
    budget::read(&mut budgets, &mut fields)?;
    read_headers(&mut budgets, headers)?;
    let mut request = parse::request(&mut fields, &mut budgets, model)?;
    let thoughts = match (budgets.thoughts, budgets.sealed) {
        (true, _) => AnthropicThoughts::Shown,
        (false, true) => AnthropicThoughts::Sealed,
        (false, false) => AnthropicThoughts::Hidden,
    };
    let wanted = AnthropicDeliveryOptions { stream: fields.boolean("stream")?.unwrap_or(false), thoughts };
    request.streams = wanted.stream;
    request.budget = budgets.finish_with_tools(&request.tools)?;
    unknown_members::reject_chat_members(&mut fields)?;
    request.unknown_members = unknown_members::take_unknown(&mut fields)?;
    request.vendor_headers = vendor::read(headers)?;
    cache_control::check(&request)?;
    Ok((request, wanted))
}

/// True if thoughts may stand between calls of tools.
fn is_interleaved(headers: &HeaderMap) -> bool {
    let named = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|list| list.split(',')).any(|name| name.trim().starts_with("interleaved-thinking"))
}

/// Reads a conversation whose tokens are to be counted.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read_count(members: Map<String, Value>, efforts: &EffortTable) -> Result<Request, ApiError> {
    let mut fields = Fields::from_body(members);
    let mut budgets = budget::parser(efforts);
    let model = budgets.suffix(&fields.model()?)?;
    // It says nothing about the prompt.
    fields.take_all(&["thinking", "max_tokens", "stream"]);
    let request = parse::request(&mut fields, &mut budgets, model)?;
    fields.finish()?;
    cache_control::check(&request)?;
    Ok(request)
}

#[cfg(test)]
mod tests;
