//! The OpenAI dialect: chat completions in and out.

mod parse;
mod render;
mod stream;
mod text;

use axum::http::HeaderMap;

use crate::chat::Request;

use super::budget::{self, Dialects, Efforts};
use super::error::Problem;
use super::fields::Fields;
use super::{marks, strict, unknown};

pub(super) use parse::Wanted;
pub(super) use render::{Look, Style, budget, completion};
pub(super) use stream::Chunks;
pub(super) use text::read_text;

/// Reads a chat completion's body and headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    body: &[u8],
    headers: &HeaderMap,
    efforts: &Efforts,
) -> Result<(Request, Wanted), Problem> {
    let mut fields = Fields::of_body(strict::object(body)?);
    let mut dialects = Dialects::of_chat(efforts);
    let model = fields.text("model")?.filter(|model| !model.is_empty());
    let model = model.ok_or_else(Problem::no_model)?;
    let model = dialects.suffix(&model)?;
    dialects.body(&mut fields)?;
    dialects.headers(headers)?;
    let (mut request, mut wanted) = parse::request(&mut fields, model)?;
    wanted.thoughts = dialects.thoughts;
    dialects.episode(budget::of_metadata(&request.extra)?);
    request.budget = dialects.finish_for(&request.tools)?;
    request.passed = unknown::rest(&mut fields)?;
    marks::check(&request)?;
    Ok((request, wanted))
}
