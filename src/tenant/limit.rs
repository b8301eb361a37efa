//! A limit on what a tenant may spend.

use std::fmt;

use serde::Serialize;

use crate::units::{Limit, Money, Tokens, Unit, Window};

/// So much of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// Money.
    Money(Money),
    /// Thinking tokens.
    Thinking(Tokens),
}

/// The most of one unit that a tenant may spend in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimit {
    /// Over what time.
    pub window: Window,
    /// How much, and of what.
    pub max: Amount,
}

impl Amount {
    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Amount::Money(_) => Unit::Money,
            Amount::Thinking(_) => Unit::Thinking,
        }
    }
}

impl TenantLimit {
    /// The name of the limit, as refusals show it.
    pub fn name(self) -> Limit {
        Limit { holder: "key", unit: self.max.unit(), window: self.window }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Money(money) => write!(f, "{money} USD"),
            Amount::Thinking(tokens) => write!(f, "{tokens} thinking tokens"),
        }
    }
}
