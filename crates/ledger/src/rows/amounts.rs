//! `Amounts`: what one request takes, in every unit that limits count.

use std::ops::{Add, AddAssign};

use serde::Serialize;

use stint_types::catalog::WorstCase;
use stint_types::units::{Amount, Count, Money, Tokens, Unit};

/// The most of any unit in one entry: nine million dollars. More is a broken counter, and sums of
/// thousands of such entries still fit the 64 bits of a database.
const ENTRY_MAX: u64 = 1 << 53;

/// So much of everything that is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Money.
    pub money: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// Requests.
    pub requests: Count,
    /// Tool calls.
    pub tool_calls: Count,
}

impl Amounts {
    /// The most money in one entry.
    pub(crate) const MONEY_MAX: Money = Money(ENTRY_MAX);

    /// Nothing.
    pub const ZERO: Amounts = Amounts {
        money: Money::ZERO,
        thinking: Tokens::ZERO,
        requests: Count::ZERO,
        tool_calls: Count::ZERO,
    };

    /// The worst case of one request.
    pub fn of_request(worst: WorstCase) -> Amounts {
        Amounts { requests: Count::ONE, ..Amounts::from(worst) }
    }

    /// So much of what a unit counts. Requests at once are nothing that was used.
    pub(crate) fn of_unit(unit: Unit, size: u64) -> Amounts {
        match unit {
            Unit::Money => Amounts { money: Money(size), ..Amounts::ZERO },
            Unit::Thinking => Amounts { thinking: Tokens(size), ..Amounts::ZERO },
            Unit::Requests => Amounts { requests: Count(size), ..Amounts::ZERO },
            Unit::ToolCalls => Amounts { tool_calls: Count(size), ..Amounts::ZERO },
            Unit::Concurrency => Amounts::ZERO,
        }
    }

    /// The part of it that a unit counts. Requests at once are counted by the requests that are reserved.
    pub fn of(self, unit: Unit) -> Amount {
        match unit {
            Unit::Money => Amount::Money(self.money),
            Unit::Thinking => Amount::Thinking(self.thinking),
            Unit::Requests => Amount::Requests(self.requests),
            Unit::ToolCalls => Amount::ToolCalls(self.tool_calls),
            Unit::Concurrency => Amount::Concurrency(self.requests),
        }
    }

    /// What is left after taking `other` away, zero at least in each.
    #[must_use]
    pub fn saturating_sub(self, other: Amounts) -> Amounts {
        Amounts {
            money: self.money.saturating_sub(other.money),
            thinking: self.thinking.saturating_sub(other.thinking),
            requests: self.requests.saturating_sub(other.requests),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
        }
    }

    /// The nearest amounts that one entry can hold.
    #[must_use]
    pub(crate) fn clamped(self) -> Amounts {
        Amounts {
            money: self.money.min(Money(ENTRY_MAX)),
            thinking: self.thinking.min(Tokens(ENTRY_MAX)),
            requests: self.requests.min(Count(ENTRY_MAX)),
            tool_calls: self.tool_calls.min(Count(ENTRY_MAX)),
        }
    }
}

impl From<WorstCase> for Amounts {
    fn from(worst: WorstCase) -> Amounts {
        Amounts { money: worst.money, thinking: worst.thinking, ..Amounts::ZERO }
    }
}

impl Add for Amounts {
    type Output = Amounts;
    fn add(self, other: Amounts) -> Amounts {
        Amounts {
            money: self.money + other.money,
            thinking: self.thinking + other.thinking,
            requests: self.requests + other.requests,
            tool_calls: self.tool_calls + other.tool_calls,
        }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Amounts) {
        *self = *self + other;
    }
}
