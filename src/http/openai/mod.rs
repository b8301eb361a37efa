//! The OpenAI dialect: chat completions in and out.

mod budget;
mod checks;
mod choice_content;
mod chunk;
pub(super) mod completions;
mod list_places;
mod parse;
mod prefill;
mod render;
mod stream;
mod text;
mod usage;

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use stint_types::chat::Request;

use super::budget::{EffortTable, from_metadata, read_headers};
use super::error::ApiError;
use super::fields::Fields;
use super::{cache_control, unknown_members};

pub(super) use budget::read_reasoning;
use parse::OpenAiDeliveryOptions;
pub(super) use parse::TOP_LOGPROBS_MAX;

/// Reads the members of a chat completion's body, and its headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    members: Map<String, Value>,
    headers: &HeaderMap,
    efforts: &EffortTable,
) -> Result<(Request, OpenAiDeliveryOptions), ApiError> {
    let mut fields = Fields::from_body(members);
    let mut budgets = budget::parser(efforts);
    let model = budgets.suffix(&fields.model()?)?;
    budget::read(&mut budgets, &mut fields)?;
    read_headers(&mut budgets, headers)?;
    let (mut request, mut wanted) = parse::request(&mut fields, model)?;
    wanted.thoughts = budgets.thoughts;
    budgets.name_episode(from_metadata(&request.extra)?);
    request.budget = budgets.finish_with_tools(&request.tools)?;
    request.unknown_members = unknown_members::take_unknown(&mut fields)?;
    cache_control::check(&request)?;
    checks::check(&request)?;
    Ok((request, wanted))
}
