//! So much of something that limits count.

use std::fmt;

use serde::Serialize;

use super::{Money, Tokens, Unit};

/// So much of one unit. As JSON, money is decimal text and tokens are a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// Money.
    Money(Money),
    /// Thinking tokens.
    Thinking(Tokens),
}

impl Amount {
    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Amount::Money(_) => Unit::Money,
            Amount::Thinking(_) => Unit::Thinking,
        }
    }

    /// The number alone, without its unit.
    pub fn number(self) -> String {
        match self {
            Amount::Money(money) => money.to_string(),
            Amount::Thinking(tokens) => tokens.to_string(),
        }
    }

    /// Which share it is of a most; nothing of nothing is no share.
    pub fn share_of(self, most: Amount) -> f64 {
        let size = |amount| match amount {
            Amount::Money(money) => money.as_dollars(),
            Amount::Thinking(tokens) => tokens.as_f64(),
        };
        let most = size(most);
        if most > 0.0 { size(self) / most } else { 0.0 }
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
