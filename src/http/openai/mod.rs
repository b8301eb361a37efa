//! The OpenAI dialect: chat completions in and out.

mod parse;
mod render;
mod stream;
mod text;

use axum::http::HeaderMap;

use crate::chat::Request;

use super::budget::{self, BudgetParser, EffortTable};
use super::error::ApiError;
use super::fields::Fields;
use super::{cache_control, strict, unknown_members};

pub(super) use parse::OpenAiDeliveryOptions;
pub(super) use render::{CompletionFormat, OpenAiRenderOptions, budget, completion};
pub(super) use stream::OpenAiStreamWriter;
pub(super) use text::read_text;

/// Reads a chat completion's body and headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    body: &[u8],
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<(Request, OpenAiDeliveryOptions), ApiError> {
    let mut fields = Fields::from_body(strict::object(body)?);
    let mut dialects = BudgetParser::for_chat(efforts);
    let model = fields.text("model")?.filter(|model| !model.is_empty());
    let model = model.ok_or_else(ApiError::missing_model)?;
    let model = dialects.suffix(&model)?;
    dialects.body(&mut fields)?;
    dialects.headers(headers)?;
    let (mut request, mut wanted) = parse::request(&mut fields, model)?;
    wanted.thoughts = dialects.thoughts;
    dialects.name_episode(budget::from_metadata(&request.extra)?);
    request.budget = dialects.finish_with_tools(&request.tools)?;
    request.unknown_members = unknown_members::take_unknown(&mut fields)?;
    cache_control::check(&request)?;
    Ok((request, wanted))
}
