//! How hard a request looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::units::{Chance, Difficulty, Tokens};

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// Numbers and proofs.
    Math,
    /// Programs.
    Code,
    /// Finding something in a given text.
    Extraction,
    /// One option of several.
    MultipleChoice,
    /// A run with tools.
    Agentic,
    /// Everything else.
    Chat,
}

impl TaskClass {
    /// The word in metrics and `/v1/plan`.
    pub fn word(self) -> &'static str {
        match self {
            TaskClass::Math => "math",
            TaskClass::Code => "code",
            TaskClass::Extraction => "extraction",
            TaskClass::MultipleChoice => "multiple_choice",
            TaskClass::Agentic => "agentic",
            TaskClass::Chat => "chat",
        }
    }
}

/// The distribution of a length in tokens: ln L ~ Normal(mu, sigma).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogNormal {
    /// The mean of ln L.
    pub mu: f64,
    /// The standard deviation of ln L, above zero.
    pub sigma: f64,
}

/// What one model is expected to need and to reach.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDemand {
    /// How long it would think.
    pub thinking: LogNormal,
    /// How long its answer would be, on average.
    pub solution: Tokens,
    /// An upper bound of the prompt's tokens for this model.
    pub prompt: Tokens,
    /// The chance of a right answer after a finished thought.
    pub done: Chance,
    /// The chance of a right answer without any thought.
    pub blind: Chance,
    /// How fast a cut thought's chance rises from `blind` towards `done`: with r = t / exp(mu), it is
    /// `blind + (done − blind)·r^bend` for r below 1.
    pub bend: f64,
}

/// The estimate for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// What kind of work it is.
    pub class: TaskClass,
    /// A summary for people and metrics.
    pub difficulty: Difficulty,
    /// How sure the estimate is, 0 (a guess) to 1.
    pub confidence: Chance,
    /// What each model would need.
    pub models: BTreeMap<Arc<str>, ModelDemand>,
}
