//! The OpenAI dialect: chat completions in and out.

mod budget;
mod parse;
mod render;
mod stream;

use axum::http::HeaderMap;

use crate::chat::Request;

use super::error::Problem;
use super::fields::{Fields, MISSING};
use super::strict;

pub(crate) use budget::Efforts;
pub(super) use parse::Wanted;
pub(super) use render::{Look, Said, completion};
pub(super) use stream::{Chunks, LOST, stream};

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
    let mut dialects = budget::Dialects::new(efforts);
    let model = fields.text("model")?.filter(|model| !model.is_empty());
    let missing = || Problem::invalid(Some("model"), "is missing; GET /v1/models lists them").code(MISSING);
    let model = model.ok_or_else(missing)?;
    let model = dialects.suffix(&model)?;
    dialects.body(&mut fields)?;
    dialects.headers(headers)?;
    let (mut request, mut wanted) = parse::request(&mut fields, model)?;
    wanted.thoughts = dialects.thoughts;
    request.budget = dialects.finish();
    fields.end()?;
    Ok((request, wanted))
}
