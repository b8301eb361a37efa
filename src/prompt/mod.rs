//! Between a conversation and what a model reads: chat templates, tokenizers, the tags of thinking.
//!
//! Nothing here knows backends or money. Where there is no tokenizer, [`bound`] says how much a prompt is at most.

pub mod bound;
pub mod tags;
