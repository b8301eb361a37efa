//! What a model can do, and how its thinking can be held.

use serde::{Deserialize, Serialize};

/// How a cut is enforced; `execute` takes the strongest that the backend has (design: elastic execution).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// One limit for both phases and an effort word; hidden thoughts are bounded, not cut.
    Effort,
    /// The thought is stopped at its budget and closed, and the answer resumed from there.
    Continue,
    /// The sampler's own state machine, exact to the token.
    Inline,
}

impl Class {
    /// The word in configuration, `budget.enforced` and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Class::Effort => "effort",
            Class::Continue => "continue",
            Class::Inline => "inline",
        }
    }
}

/// Something that only some models can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Calls the caller's functions.
    Tools,
    /// Understands parts other than text.
    Images,
    /// Holds to a `response_format`.
    Schema,
    /// Takes `presence_penalty`, `frequency_penalty` and `logit_bias`.
    Penalties,
}

impl Capability {
    /// The word for it in configuration and errors.
    pub fn word(self) -> &'static str {
        match self {
            Capability::Tools => "tools",
            Capability::Images => "images",
            Capability::Schema => "schema",
            Capability::Penalties => "penalties",
        }
    }
}

/// What a request needs of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Each must be among the model's capabilities.
    pub capabilities: Vec<Capability>,
}
