//! The worth of success that makes a route reach a stated mean success at the least cost: pacing's mirror image.
//!
//! Where a budget is stated, the dual multiplies cost; where a success is, it multiplies what success is worth. The
//! plan's own maximum then reaches the target at the least cost, as it reaches the most success for a budget.

use serde::{Deserialize, Serialize};

use stint_types::units::Chance;

/// How a route keeps to its target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SuccessPacer {
    /// The average success, to be shown; none yet where negative.
    success: f64,
    /// The logarithm of the factor.
    exponent: f64,
}

/// What the average keeps of itself at each request.
const AVERAGE: f64 = 0.99;
/// By how much the exponent rises for a request that falls short by all of success.
const STEP: f64 = 0.1;
/// How far the factor goes, down and up, as a power of e. It is also what keeps a target out of reach from winding up.
const EXPONENT_MAX: f64 = 7.0;

impl Default for SuccessPacer {
    /// At the route's own worth.
    fn default() -> SuccessPacer {
        SuccessPacer { success: -1.0, exponent: 0.0 }
    }
}

impl SuccessPacer {
    /// A request came out so: as it was judged, or else as it was predicted.
    pub fn settle(&mut self, success: Chance, target: Chance) {
        let keep = if self.success < 0.0 { 0.0 } else { AVERAGE };
        self.success = keep * self.success + (1.0 - keep) * success.get();
        self.exponent =
            (self.exponent + STEP * (target.get() - success.get())).clamp(-EXPONENT_MAX, EXPONENT_MAX);
    }

    /// What success is worth now, as a multiple of the route's own worth.
    pub fn factor(&self) -> f64 {
        self.exponent.exp()
    }

    /// The success reached of late; nothing before the first request.
    pub fn reached(&self) -> Option<Chance> {
        (self.success >= 0.0).then(|| Chance::new(self.success))
    }
}
