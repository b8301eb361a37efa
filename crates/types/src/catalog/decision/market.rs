//! `Market`: the current prices and conditions of models.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::Timestamp;

/// One model's state at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelConditions {
    /// Seconds that a request is expected to wait before it is looked at.
    pub queue: f64,
    /// The same if all before it gave up their thoughts: what would be there later even so is refused.
    pub queue_least: f64,
    /// Seconds to read one token of prompt.
    pub prefill: f64,
    /// Seconds to write one token.
    pub token: f64,
    /// False if it cannot be used.
    pub healthy: bool,
}

/// What things cost now, apart from list prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Market {
    /// By model; one that is absent has not been measured yet.
    pub models: BTreeMap<Arc<str>, ModelConditions>,
    /// The shadow price λ of a dollar for this account: 1 is at its face value.
    pub shadow_price: f64,
    /// How much more or less than the route says a right answer is worth now: 1 is as it says. Where a share of right
    /// answers is steered for, its dual variable stands here.
    pub worth_factor: f64,
    /// When it is, for prices that depend on the hour; without it the dearest hold.
    pub at: Option<Timestamp>,
}

impl Default for ModelConditions {
    /// Not measured yet: instant, so that a new model is tried.
    fn default() -> ModelConditions {
        ModelConditions { queue: 0.0, queue_least: 0.0, prefill: 0.0, token: 0.0, healthy: true }
    }
}

impl Market {
    /// A model's state.
    pub fn conditions(&self, model: &str) -> ModelConditions {
        self.models.get(model).copied().unwrap_or_default()
    }
}

impl Default for Market {
    fn default() -> Market {
        Market { models: BTreeMap::new(), shadow_price: 1.0, worth_factor: 1.0, at: None }
    }
}
