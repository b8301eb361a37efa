//! `Allowance`: what a caller may still spend.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::units::{Amount, Limit, Money, Timestamp, Tokens};

/// What is left under one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingQuota<T> {
    /// Which limit it is.
    pub limit: Limit,
    /// All of it.
    pub max: Amount,
    /// How much is left of it.
    pub amount: T,
    /// When it starts again; never, for a limit without a window.
    pub resets_at: Option<Timestamp>,
}

/// The least that some limits leave. Absent is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TightestLimits {
    /// Money.
    pub money: Option<RemainingQuota<Money>>,
    /// Thinking tokens, of all choices together.
    pub thinking: Option<RemainingQuota<Tokens>>,
}

/// The least of what request, key and the accounts above it leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Whichever model serves it.
    pub overall: TightestLimits,
    /// What limits on single models leave to each.
    pub models: BTreeMap<Arc<str>, TightestLimits>,
    /// Time until the whole answer must be there.
    pub deadline: Option<Duration>,
}

impl Allowance {
    /// True if a model that has no price cannot be afforded.
    pub fn limits_money(&self, model: &str) -> bool {
        self.limits_on(model).any(|limit| limit.money.is_some())
    }

    /// True if thinking tokens of that model are limited.
    pub fn limits_thinking(&self, model: &str) -> bool {
        self.limits_on(model).any(|limit| limit.thinking.is_some())
    }

    fn limits_on(&self, model: &str) -> impl Iterator<Item = &TightestLimits> {
        [Some(&self.overall), self.models.get(model)].into_iter().flatten()
    }
}
