//! What a model can do, and how its thinking budget can be enforced.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chat::CacheTtl;
use crate::units::Tokens;

/// How a cut is enforced; `execute` takes the strongest that the backend has (design: elastic execution).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnforcementClass {
    /// One limit for both phases and an effort word; hidden thoughts are bounded, not cut.
    Effort,
    /// The stream is cut where the thought reaches its budget, and the answer asked for in a new turn without
    /// thinking.
    Turn,
    /// The provider's own budget, verified by counting.
    Native,
    /// The thought is stopped at its budget and closed, and the answer resumed from there.
    Continue,
    /// The sampler's own state machine, exact to the token.
    Inline,
}

impl EnforcementClass {
    /// The most that a native budget of `t` may take: providers count and stop a little differently than we do
    /// (1.1·t + 32, design: elastic execution). What goes beyond does not hold.
    pub fn native_max(t: Tokens) -> Tokens {
        if t == Tokens::ZERO { t } else { t + Tokens(t.0.div_ceil(10)) + Tokens(32) }
    }

    /// True if a thought is cut by stopping one call and the answer asked for in another.
    pub fn is_resumed(self) -> bool {
        matches!(self, EnforcementClass::Continue | EnforcementClass::Turn)
    }

    /// The word in configuration, `budget.enforced` and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            EnforcementClass::Effort => "effort",
            EnforcementClass::Turn => "turn",
            EnforcementClass::Native => "native",
            EnforcementClass::Continue => "continue",
            EnforcementClass::Inline => "inline",
        }
    }
}

/// Something that only some models can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Calls the caller's functions.
    Tools,
    /// Understands images and sound.
    Images,
    /// Reads PDF files.
    Documents,
    /// Writes a JSON object where it is asked to (`json_object`).
    Json,
    /// Holds to a schema (`json_schema`), and so writes any JSON.
    Schema,
    /// Takes `presence_penalty`, `frequency_penalty` and `logit_bias`.
    Penalties,
    /// Reports the log probabilities of its tokens.
    Logprobs,
}

impl Capability {
    /// The word for it in configuration and errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Tools => "tools",
            Capability::Images => "images",
            Capability::Documents => "documents",
            Capability::Json => "json",
            Capability::Schema => "schema",
            Capability::Penalties => "penalties",
            Capability::Logprobs => "logprobs",
        }
    }
}

/// What a model can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// The answer to a conversation.
    #[default]
    Chat,
    /// How a text goes on.
    Completions,
    /// A text as a vector.
    Embeddings,
}

impl Service {
    /// The word for it in configuration and errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Service::Chat => "chat",
            Service::Completions => "completions",
            Service::Embeddings => "embeddings",
        }
    }
}

/// What a request needs of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// It must be among what the model can be asked for.
    pub service: Service,
    /// Each must be among the model's capabilities.
    pub capabilities: Vec<Capability>,
    /// True if a tool must be called, which nothing holds a resumed answer to.
    pub forces_tools: bool,
    /// The longest that its caller wants any of it kept in a provider's cache.
    pub cache_ttl: CacheTtl,
    /// The members that nobody here knows: the backend must take each, or do without it.
    pub members: Vec<Arc<str>>,
    /// True if the answer's shape is restricted in a way that no thought can satisfy.
    pub shapes_answer: bool,
}
