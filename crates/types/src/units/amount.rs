//! An amount of something that limits count.

use std::fmt;

use serde::Serialize;

use super::{Count, Money, Tokens, Unit};

/// So much of one unit. As JSON, money is decimal text and the others are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// Money.
    Money(Money),
    /// Thinking tokens.
    Thinking(Tokens),
    /// Requests.
    Requests(Count),
    /// Tool calls.
    ToolCalls(Count),
    /// Requests at once.
    Concurrency(Count),
}

impl Amount {
    /// So much of a unit, from its smallest parts: nano-dollars, tokens, calls.
    pub fn new(unit: Unit, size: u64) -> Amount {
        match unit {
            Unit::Money => Amount::Money(Money(size)),
            Unit::Thinking => Amount::Thinking(Tokens(size)),
            Unit::Requests => Amount::Requests(Count(size)),
            Unit::ToolCalls => Amount::ToolCalls(Count(size)),
            Unit::Concurrency => Amount::Concurrency(Count(size)),
        }
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Amount::Money(_) => Unit::Money,
            Amount::Thinking(_) => Unit::Thinking,
            Amount::Requests(_) => Unit::Requests,
            Amount::ToolCalls(_) => Unit::ToolCalls,
            Amount::Concurrency(_) => Unit::Concurrency,
        }
    }

    /// In the unit's smallest parts: nano-dollars, tokens, calls.
    pub fn size(self) -> u64 {
        match self {
            Amount::Money(money) => money.0,
            Amount::Thinking(tokens) => tokens.0,
            Amount::Requests(count) | Amount::ToolCalls(count) | Amount::Concurrency(count) => count.0,
        }
    }

    /// The number alone, without its unit.
    pub fn number(self) -> String {
        match self {
            Amount::Money(money) => money.to_string(),
            other => other.size().to_string(),
        }
    }

    /// Which share it is of a most; nothing of nothing is no share.
    #[expect(clippy::cast_precision_loss, reason = "a share is shown, not spent")]
    pub fn share_of(self, most: Amount) -> f64 {
        let most = most.size() as f64;
        if most > 0.0 { self.size() as f64 / most } else { 0.0 }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Money(money) => write!(f, "{money} USD"),
            Amount::Thinking(tokens) => write!(f, "{tokens} thinking tokens"),
            Amount::Requests(Count::ONE) => f.write_str("1 request"),
            Amount::Requests(count) => write!(f, "{count} requests"),
            Amount::ToolCalls(Count::ONE) => f.write_str("1 tool call"),
            Amount::ToolCalls(count) => write!(f, "{count} tool calls"),
            Amount::Concurrency(Count::ONE) => f.write_str("1 request at once"),
            Amount::Concurrency(count) => write!(f, "{count} requests at once"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_as_one() {
        let said = |count| [Amount::Requests, Amount::ToolCalls].map(|of| of(Count(count)).to_string());
        assert_eq!(said(1), ["1 request", "1 tool call"]);
        assert_eq!(said(2), ["2 requests", "2 tool calls"]);
        assert_eq!(Amount::Concurrency(Count::ONE).to_string(), "1 request at once");
    }
}
