//! Money and thinking tokens together, and the names of accounts.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::sync::Arc;

use serde::Serialize;

use crate::catalog::WorstCase;
use crate::tenant::Tenant;
use crate::units::{Amount, Money, Tokens, Unit};

/// The most of either unit in one entry: nine million dollars. More is a broken counter, and sums of
/// thousands of such entries still fit the 64 bits of a database.
const ENTRY_MAX: u64 = 1 << 53;

/// The name of an account; stable across restarts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AccountId(Arc<str>);

/// So much money and so many thinking tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Money.
    pub money: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
}

impl AccountId {
    /// The account of that name.
    pub fn new(name: impl Into<Arc<str>>) -> AccountId {
        AccountId(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Tenant> for AccountId {
    fn from(tenant: &Tenant) -> AccountId {
        AccountId(tenant.name.clone())
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Amounts {
    /// Nothing.
    pub const ZERO: Amounts = Amounts { money: Money::ZERO, thinking: Tokens::ZERO };

    /// The part of it that a unit counts.
    pub fn of(self, unit: Unit) -> Amount {
        match unit {
            Unit::Money => Amount::Money(self.money),
            Unit::Thinking => Amount::Thinking(self.thinking),
        }
    }

    /// What is left after taking `other` away, zero at least in each.
    #[must_use]
    pub fn saturating_sub(self, other: Amounts) -> Amounts {
        Amounts {
            money: self.money.saturating_sub(other.money),
            thinking: self.thinking.saturating_sub(other.thinking),
        }
    }

    /// The nearest amounts that one entry can hold.
    #[must_use]
    pub(super) fn clamped(self) -> Amounts {
        Amounts { money: self.money.min(Money(ENTRY_MAX)), thinking: self.thinking.min(Tokens(ENTRY_MAX)) }
    }
}

impl From<WorstCase> for Amounts {
    fn from(worst: WorstCase) -> Amounts {
        Amounts { money: worst.money, thinking: worst.thinking }
    }
}

impl Add for Amounts {
    type Output = Amounts;
    fn add(self, other: Amounts) -> Amounts {
        Amounts { money: self.money + other.money, thinking: self.thinking + other.thinking }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Amounts) {
        *self = *self + other;
    }
}
