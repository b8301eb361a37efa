//! A count of requests or calls.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A count of requests or of tool calls. Arithmetic saturates, as with tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Count(pub u64);

impl Count {
    /// None.
    pub const ZERO: Count = Count(0);
    /// One.
    pub const ONE: Count = Count(1);

    /// What is left after taking `other` away, at least zero.
    #[must_use]
    pub fn saturating_sub(self, other: Count) -> Count {
        Count(self.0.saturating_sub(other.0))
    }
}

impl Add for Count {
    type Output = Count;
    fn add(self, other: Count) -> Count {
        Count(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
