//! OpenAI's Responses: items in, items out, responses that can be had again, and conversations that they go on from.

mod arguments;
mod before;
mod choice;
pub(super) mod conversations;
mod echo;
mod form;
mod item;
mod items;
mod keeping;
mod listing;
mod offer;
mod output;
mod parse;
mod parts;
mod recall;
mod refer;
mod respond;
mod stored;
mod stream;
mod teller;
#[cfg(test)]
mod tests;
mod tools;

pub(super) use respond::respond;
pub(super) use stored::{delete, input_items, retrieve};

use crate::units::RequestId;

/// What the id of a response begins with; the rest is the request's own.
pub(super) const PREFIX: &str = "resp_";

/// The id of a response.
fn name(id: RequestId) -> String {
    id.to_string().replacen("req_", PREFIX, 1)
}

/// The request that made a response, by the response's id.
fn request_of(name: &str) -> Option<RequestId> {
    name.strip_prefix(PREFIX)?.parse().ok()
}
