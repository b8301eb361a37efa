//! OpenAI's Responses: items in, items out, responses that can be had again, and conversations that they go on from.

mod arguments;
mod choice;
pub(super) mod conversations;
mod echo;
mod event_writer;
mod form;
mod item;
mod items;
mod listing;
mod load_context;
mod output;
mod parse;
mod parts;
mod previous_context;
mod recorder;
mod references;
mod respond;
mod stored;
mod stream;
#[cfg(test)]
mod tests;
mod tool_set;
mod tools;

pub(super) use respond::respond;
pub(super) use stored::{delete, input_items, retrieve};

use crate::units::RequestId;

/// What the id of a response begins with; the rest is the request's own.
pub(super) const PREFIX: &str = "resp_";

/// The id of a response.
fn response_id(id: RequestId) -> String {
    id.to_string().replacen("req_", PREFIX, 1)
}

/// The request that made a response, by the response's id.
fn request_id_of(name: &str) -> Option<RequestId> {
    name.strip_prefix(PREFIX)?.parse().ok()
}
