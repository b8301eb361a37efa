//! What can go wrong between a conversation and its tokens.

use thiserror::Error;

/// Why there is no prompt.
#[derive(Debug, Error)]
pub enum PromptError {
    /// The file's vocabulary makes no tokenizer.
    #[error("the model's vocabulary makes no tokenizer: {0}")]
    Vocabulary(String),
    /// Cutting text otherwise than the model learnt it would give wrong tokens without a sign of it.
    #[error(
        "the model's way to cut text ({0:?}) is not supported: serve it by llama.cpp (`kind = \"llamacpp\"`)"
    )]
    PreTokenizer(String),
    /// The file has no chat template.
    #[error("the model file has no chat template: it cannot be spoken to")]
    NoTemplate,
    /// The chat template has a mistake, or does too much.
    #[error("the model's chat template fails: {0}")]
    Template(#[source] minijinja::Error),
    /// The chat template refuses this conversation, in its own words.
    #[error("the model's chat template refuses this conversation: {0}")]
    Refused(String),
    /// A tag that is stated is no token.
    #[error(
        "its vocabulary has no token {0:?} of its own: state in `start_tag` and `end_tag` what the tokens around its thoughts are called"
    )]
    NoToken(String),
    /// More closes a thought than the engine has room for.
    #[error("its hand-off has {tokens} tokens, and {max} is the most: shorten `hand_off`")]
    HandOffTooLong {
        /// How many it has.
        tokens: usize,
        /// The most.
        max: usize,
    },
    /// The tokenizer failed on a text.
    #[error("the prompt cannot be tokenized: {0}")]
    Tokenizer(String),
}
