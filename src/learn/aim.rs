//! The worth of success that makes a route reach a stated mean success at the least cost: pacing's mirror image.

use serde::{Deserialize, Serialize};

use crate::units::Chance;

/// How a route keeps to its target: `factor` multiplies what success is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// The average success.
    success: f64,
    /// The logarithm of the factor.
    exponent: f64,
}

/// What the average keeps of itself at each request.
const AVERAGE: f64 = 0.99;
/// By how much the exponent rises for a request that falls short by all of success.
const STEP: f64 = 0.1;
/// How far the factor goes, down and up: e to this power.
const EXPONENT_MAX: f64 = 10.0;

impl Default for Aim {
    /// At the route's own worth.
    fn default() -> Aim {
        Aim { success: -1.0, exponent: 0.0 }
    }
}

impl Aim {
    /// A request came out so: judged, or else as it was predicted.
    pub fn settle(&mut self, success: Chance, target: Chance) {
        let keep = if self.success < 0.0 { 0.0 } else { AVERAGE };
        self.success = keep * self.success + (1.0 - keep) * success.get();
        let short = target.get() - self.success;
        self.exponent = (self.exponent + STEP * short).clamp(-EXPONENT_MAX, EXPONENT_MAX);
    }

    /// What success is worth now, as a multiple of the route's worth.
    pub fn factor(&self) -> f64 {
        self.exponent.exp()
    }
}
