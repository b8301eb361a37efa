//! What a caller may still spend now.

use std::time::Duration;

use crate::units::{Limit, Money, Timestamp, Tokens};

/// What is left under one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left<T> {
    /// Which limit it is.
    pub limit: Limit,
    /// How much is left of it.
    pub amount: T,
    /// When it starts anew; never, for a limit without a window.
    pub resets_at: Option<Timestamp>,
}

/// The least of what request and key leave. Absent is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Money.
    pub money: Option<Left<Money>>,
    /// Thinking tokens, of all choices together.
    pub thinking: Option<Left<Tokens>>,
    /// Time until the whole answer must be there.
    pub deadline: Option<Duration>,
}
