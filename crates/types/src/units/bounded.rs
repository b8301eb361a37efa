//! Numbers with a range: chances, difficulty, effort, preference.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A probability in [0, 1].
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(from = "f64")]
pub struct Chance(f64);

/// How hard a request looks, in [0, 1]: a summary for people and metrics, never what decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(from = "f64")]
pub struct Difficulty(f64);

/// A share of what a model usually thinks on requests like this one; above 1, a multiple of its longest
/// usual thought.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Effort(f64);

/// How much success is worth against cost: 0 buys the cheapest that is good enough, 1 the best regardless.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Preference(f64);

/// A number outside the range of its kind.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{what} must be between 0 and {max}")]
pub struct OutOfRange {
    what: &'static str,
    max: f64,
}

fn within(value: f64, max: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, max) }
}

fn checked(value: f64, what: &'static str, max: f64) -> Result<f64, OutOfRange> {
    if (0.0..=max).contains(&value) { Ok(value) } else { Err(OutOfRange { what, max }) }
}

impl Chance {
    /// What cannot be.
    pub const ZERO: Chance = Chance(0.0);

    /// The nearest probability to `value`; not-a-number is no chance at all.
    pub fn new(value: f64) -> Chance {
        Chance(within(value, 1.0))
    }

    /// The probability.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl From<f64> for Chance {
    fn from(value: f64) -> Chance {
        Chance::new(value)
    }
}

impl Difficulty {
    /// The nearest difficulty to `value`.
    pub fn new(value: f64) -> Difficulty {
        Difficulty(within(value, 1.0))
    }

    /// The difficulty in [0, 1].
    pub fn get(self) -> f64 {
        self.0
    }
}

impl From<f64> for Difficulty {
    fn from(value: f64) -> Difficulty {
        Difficulty::new(value)
    }
}

impl Effort {
    /// The most effort that can be asked for.
    pub const MAX: f64 = 10.0;

    /// The effort.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Effort {
    type Error = OutOfRange;
    fn try_from(value: f64) -> Result<Effort, OutOfRange> {
        checked(value, "effort", Effort::MAX).map(Effort)
    }
}

impl Preference {
    /// The preference in [0, 1].
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Preference {
    type Error = OutOfRange;
    fn try_from(value: f64) -> Result<Preference, OutOfRange> {
        checked(value, "preference", 1.0).map(Preference)
    }
}

impl Default for Preference {
    /// Halfway between the cheapest and the best.
    fn default() -> Preference {
        Preference(0.5)
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}
