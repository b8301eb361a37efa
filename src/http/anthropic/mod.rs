//! Anthropic's dialect: Messages in and out, so that its SDK and the agents built on it work unchanged.

mod blocks;
mod conversation;
mod errors;
mod parse;
mod render;
mod stream;

use axum::http::HeaderMap;

use crate::chat::Request;

use super::budget::{BudgetParser, EffortTable};
use super::error::ApiError;
use super::fields::Fields;
use super::{cache_control, strict, unknown_members};

pub(super) use errors::{error_response, rewrite_errors};
pub(super) use render::{AnthropicRenderOptions, AnthropicThoughts, message};
pub(super) use stream::AnthropicStreamWriter;

/// What the caller wants of the wire, apart from the answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnthropicDeliveryOptions {
    /// Events as they come, or one object.
    pub(super) stream: bool,
    /// Thoughts beside the answer.
    pub(super) thoughts: AnthropicThoughts,
}

/// Reads the body and the headers of a request for a message.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    body: &[u8],
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<(Request, AnthropicDeliveryOptions), ApiError> {
    let mut fields = Fields::from_body(strict::object(body)?);
    let mut dialects = BudgetParser::for_messages(efforts);
    let model = dialects.suffix(&model(&mut fields)?)?;
    dialects.messages(&mut fields)?;
    dialects.headers(headers)?;
    let mut request = parse::request(&mut fields, &mut dialects, model)?;
    let thoughts = match (dialects.thoughts, dialects.sealed) {
        (true, _) => AnthropicThoughts::Shown,
        (false, true) => AnthropicThoughts::Sealed,
        (false, false) => AnthropicThoughts::Hidden,
    };
    let wanted = AnthropicDeliveryOptions { stream: fields.boolean("stream")?.unwrap_or(false), thoughts };
    request.streams = wanted.stream;
    request.budget = dialects.finish_with_tools(&request.tools)?;
    request.unknown_members = unknown_members::take_unknown(&mut fields)?;
    cache_control::check(&request)?;
    Ok((request, wanted))
}

/// Reads a conversation whose tokens are to be counted.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read_count(body: &[u8], efforts: &EffortTable) -> Result<Request, ApiError> {
    let mut fields = Fields::from_body(strict::object(body)?);
    let mut dialects = BudgetParser::for_messages(efforts);
    let model = dialects.suffix(&model(&mut fields)?)?;
    // It says nothing about the prompt.
    fields.take_all(&["thinking", "max_tokens", "stream"]);
    let request = parse::request(&mut fields, &mut dialects, model)?;
    fields.finish()?;
    cache_control::check(&request)?;
    Ok(request)
}

fn model(fields: &mut Fields) -> Result<String, ApiError> {
    fields.text("model")?.filter(|model| !model.is_empty()).ok_or_else(ApiError::missing_model)
}

#[cfg(test)]
mod tests;
