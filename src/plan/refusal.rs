//! Why no offer can be made.

use std::sync::Arc;
use std::time::Duration;

use crate::units::{Amount, Limit, Money, Timestamp, Tokens};

/// Why no model can serve a request within its budgets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No model can do something that the request needs.
    #[error("no model here can do {what}: ask for another model or leave it out")]
    NotCapable {
        /// The word for it.
        what: &'static str,
    },
    /// The prompt leaves no room for an answer.
    #[error(
        "prompt, hand-off and one token of answer take {needed} tokens, the context is {context}: shorten the messages"
    )]
    ContextExceeded {
        /// The least that the context would have to hold.
        needed: Tokens,
        /// What it holds.
        context: Tokens,
    },
    /// The caller's own token limits leave no room for an answer.
    #[error(
        "an answer takes {needed} tokens at least, {stated} are allowed: raise max_completion_tokens or solution_tokens"
    )]
    BudgetTooSmall {
        /// The hand-off and one token of answer.
        needed: Tokens,
        /// What the caller stated.
        stated: Tokens,
    },
    /// The model cannot think as little as that.
    #[error(
        "this model always thinks, {needed} tokens at least: allow it more thinking_tokens or ask another model"
    )]
    AlwaysThinks {
        /// The least thought that it can be given.
        needed: Tokens,
    },
    /// A model without a price, for a caller whose money is limited.
    #[error("{model} has no price, and this key's money is limited: give it a price, 0 if it is free")]
    Unpriced {
        /// The model.
        model: Arc<str>,
    },
    /// Not even an answer without a thought is there in time.
    #[error(
        "an answer without a thought takes about {needed:?}, the deadline is in {left:?}: allow more time"
    )]
    DeadlineUnreachable {
        /// The least time for a usual answer.
        needed: Duration,
        /// The time there is.
        left: Duration,
    },
    /// No model can be asked now.
    #[error("no suitable model is available now: try again later")]
    Unhealthy,
    /// The caller's own `cost_usd` is too small.
    #[error(
        "the cheapest offer may cost {needed} dollars, cost_usd is {cost}: raise it or shorten the request"
    )]
    RequestCost {
        /// The worst case of the cheapest offer.
        needed: Money,
        /// What the caller stated.
        cost: Money,
    },
    /// What is left under a limit is too little.
    #[error(
        "needs {needed}, and {limit} has {left} left: ask for less, wait until it starts anew, or have it raised"
    )]
    DoesNotFit {
        /// Which limit.
        limit: Limit,
        /// The worst case of the least offer.
        needed: Amount,
        /// What is left.
        left: Amount,
        /// When the limit starts anew.
        resets_at: Option<Timestamp>,
    },
}

impl Refusal {
    /// The stable word for it, in errors and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotCapable { .. } => "model_not_capable",
            Refusal::ContextExceeded { .. } => "context_length_exceeded",
            Refusal::BudgetTooSmall { .. } | Refusal::AlwaysThinks { .. } | Refusal::RequestCost { .. } => {
                "budget_too_small"
            }
            Refusal::Unpriced { .. } => "model_unpriced",
            Refusal::DeadlineUnreachable { .. } => "deadline_unreachable",
            Refusal::Unhealthy => "overloaded",
            Refusal::DoesNotFit { .. } => "insufficient_quota",
        }
    }

    /// How near it came to an offer: of several models' refusals the nearest is told, and of those the one
    /// that lacked least.
    pub(super) fn nearness(&self) -> (u8, u128) {
        let less = |amount: u64| u128::from(u64::MAX - amount);
        match self {
            Refusal::NotCapable { .. } => (0, 0),
            Refusal::ContextExceeded { context, .. } => (1, context.0.into()),
            Refusal::BudgetTooSmall { needed, .. } | Refusal::AlwaysThinks { needed } => (2, less(needed.0)),
            Refusal::Unpriced { .. } => (3, 0),
            Refusal::DeadlineUnreachable { needed, .. } => (4, u128::MAX - needed.as_nanos()),
            Refusal::Unhealthy => (5, 0),
            Refusal::RequestCost { needed, .. } => (6, less(needed.0)),
            Refusal::DoesNotFit { needed, .. } => (7, less(needed.size())),
        }
    }
}
