//! Anthropic's dialect: Messages in and out, so that its SDK and the agents built on it work unchanged.

mod blocks;
mod conversation;
mod errors;
mod parse;
mod render;
mod stream;

use axum::http::HeaderMap;

use crate::chat::Request;

use super::budget::{Dialects, Efforts};
use super::error::Problem;
use super::fields::Fields;
use super::{marks, strict, unknown};

pub(super) use errors::{problem, reworded};
pub(super) use render::{Look, Thoughts, message};
pub(super) use stream::Chunks;

/// What the caller wants of the wire, apart from the answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Events as they come, or one object.
    pub(super) stream: bool,
    /// Thoughts beside the answer.
    pub(super) thoughts: Thoughts,
}

/// Reads the body and the headers of a request for a message.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(
    body: &[u8],
    headers: &HeaderMap,
    efforts: &Efforts,
) -> Result<(Request, Wanted), Problem> {
    let mut fields = Fields::of_body(strict::object(body)?);
    let mut dialects = Dialects::of_messages(efforts);
    let model = dialects.suffix(&model(&mut fields)?)?;
    dialects.messages(&mut fields)?;
    dialects.headers(headers)?;
    let mut request = parse::request(&mut fields, &mut dialects, model)?;
    let thoughts = match (dialects.thoughts, dialects.sealed) {
        (true, _) => Thoughts::Shown,
        (false, true) => Thoughts::Sealed,
        (false, false) => Thoughts::Hidden,
    };
    let wanted = Wanted { stream: fields.flag("stream")?.unwrap_or(false), thoughts };
    request.streams = wanted.stream;
    request.budget = dialects.finish_for(&request.tools)?;
    request.passed = unknown::rest(&mut fields)?;
    marks::check(&request)?;
    Ok((request, wanted))
}

/// Reads a conversation whose tokens are to be counted.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read_count(body: &[u8], efforts: &Efforts) -> Result<Request, Problem> {
    let mut fields = Fields::of_body(strict::object(body)?);
    let mut dialects = Dialects::of_messages(efforts);
    let model = dialects.suffix(&model(&mut fields)?)?;
    // It says nothing about the prompt.
    fields.pass(&["thinking", "max_tokens", "stream"]);
    let request = parse::request(&mut fields, &mut dialects, model)?;
    fields.end()?;
    marks::check(&request)?;
    Ok(request)
}

fn model(fields: &mut Fields) -> Result<String, Problem> {
    fields.text("model")?.filter(|model| !model.is_empty()).ok_or_else(Problem::no_model)
}

#[cfg(test)]
mod tests;
