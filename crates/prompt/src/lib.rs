//! Between a conversation and what a model reads: chat templates, tokenizers, the tags of thinking.
//!
//! Nothing here knows backends or money. Where there is no tokenizer, [`token_bound`] says how much a prompt is at most,
//! [`token_estimate`] about how much it is, and [`prompt_text`] what it is made of.

mod controls;
mod detokenizer;
mod encoded_bytes;
mod error;
mod format;
mod image_size;
pub mod image_type;
mod media_bound;
mod pre_tokenizer;
pub mod prompt_text;
mod python_methods;
mod spm;
pub mod tags;
mod template;
mod thinking_tags;
pub mod token_bound;
pub mod token_estimate;
mod tokenizer;
pub mod tool_calls;
mod turn_style;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use detokenizer::Detokenizer;
pub use error::PromptError;
pub use format::PromptFormat;
pub use template::{ChatTemplate, TemplateContext};
pub use thinking_tags::ThinkingTags;
pub use tokenizer::Tokenizer;
pub use vocabulary::{TokenKind, TokenizerKind, Vocabulary};
