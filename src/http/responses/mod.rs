//! OpenAI's Responses: items in, items out, stored responses, and the conversations that they continue.

mod annotations;
mod arguments;
mod budget;
mod choice;
mod compaction;
mod conversation_builder;
pub(super) mod conversations;
mod echo;
mod errors;
mod event_writer;
mod form;
mod id;
mod input_tokens;
mod item;
mod listing;
mod load_context;
mod open_message;
mod output;
mod parse;
mod parts;
mod previous_context;
mod recorder;
mod references;
mod repeated_items;
mod respond;
mod stored;
mod stream;
#[cfg(test)]
mod tests;
mod tool_set;
mod tools;

pub(super) use input_tokens::input_tokens;
pub(super) use respond::{compact, respond};
pub(super) use stored::{cancel, delete, input_items, retrieve};
