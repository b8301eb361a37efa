//! The name of a limit, as refusals and allowances show it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Window;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nano-dollars.
    Money,
    /// Thinking tokens.
    Thinking,
}

/// Which limit it is: `key money month`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Whose limit: `key` or `request`.
    pub holder: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Over what time.
    pub window: Window,
}

impl Unit {
    /// The word for it in the name of a limit.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Money => "money",
            Unit::Thinking => "thinking",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.holder, self.unit.word(), self.window)
    }
}
