//! A count of tokens.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use serde::{Deserialize, Serialize};

/// A count of tokens. Arithmetic saturates: a count that large is refused by every limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Tokens = Tokens(0);
    /// More than any limit.
    pub const MAX: Tokens = Tokens(u64::MAX);

    /// What is left after taking `other` away, zero at least.
    #[must_use]
    pub fn saturating_sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }

    /// The count as the `u32` that engines and wire formats take; the largest one if it does not fit.
    pub fn clamp_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The count for statistics; exact up to 2⁵³.
    #[expect(clippy::cast_precision_loss, reason = "statistics do not need counts beyond 2^53 exactly")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The nearest whole count to a statistic; negative and not-a-number are zero.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
    pub fn round(value: f64) -> Tokens {
        // A cast is an instruction, rounding itself a call on many machines.
        Tokens((value + 0.5) as u64)
    }
}

impl From<u32> for Tokens {
    fn from(count: u32) -> Tokens {
        Tokens(u64::from(count))
    }
}

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Mul<u64> for Tokens {
    type Output = Tokens;
    fn mul(self, times: u64) -> Tokens {
        Tokens(self.0.saturating_mul(times))
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(counts: I) -> Tokens {
        counts.fold(Tokens::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
