//! Between a conversation and what a model reads: chat templates, tokenizers, the tags of thinking.
//!
//! Nothing here knows backends or money. Where there is no tokenizer, [`bound`] says how much a prompt is at most, and [`guess`] about
//! how much it is.

pub mod bound;
pub mod calls;
mod controls;
mod detokenizer;
mod error;
mod format;
pub mod guess;
pub mod tags;
mod template;
mod tokenizer;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use detokenizer::Detokenizer;
pub use error::PromptError;
pub use format::{Format, Tags};
pub use template::{Context, Template};
pub use tokenizer::Tokenizer;
pub use vocabulary::{Kind, Vocabulary};
