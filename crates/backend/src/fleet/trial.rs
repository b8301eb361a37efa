//! Finds out whether a target is full or slow.
//!
//! Both make callers wait, and a slow target also has more concurrent calls, since each takes longer (Little's law). No
//! observation can distinguish them, but an experiment can. For a moment there are a quarter fewer calls, as Envoy's
//! adaptive concurrency measures its minimal round trip with few calls. If the waits fall with the calls, the target was
//! full, and the lower limit stays. Otherwise it was slow, and the limit is restored. The trial compares the gradient of
//! the waits by the calls,
//!
//! ```text
//! ln(ratio before / ratio after) / ln(calls before / calls after)
//! ```
//!
//! which is 0 for a target with room, however slow; 1 if the calls share a fixed capacity; more if they queue up.
//! (Netflix's concurrency-limits, `Gradient2Limit`, compares a long average of waits with a short one, so that a target
//! that is slow for long becomes usual: good against a limit that keeps falling, but it cannot distinguish full from
//! slow.)

use std::time::Duration;

use tokio::time::Instant;

use super::waits::{JudgedWait, median_in_flight, median_ratio};

/// A gradient from which on a target counts as full.
const FULL: f64 = 0.5;
/// One below which it counts as slow.
const SLOW: f64 = 0.25;
/// So many waits are compared, at least and at most.
pub(super) const WAITS_MIN: usize = 8;
const WAITS_MAX: usize = 32;
/// How long a trial lasts at most: so long, or so many times the waits that led to it, but never longer.
const DURATION_MIN: Duration = Duration::from_secs(5);
const DURATION_WAITS: u32 = 3;
const DURATION_MAX: Duration = Duration::from_secs(60);

/// A trial with fewer calls.
#[derive(Debug, Clone)]
pub(super) struct CapacityTrial {
    permits: f64,
    before: Vec<JudgedWait>,
    during: Vec<JudgedWait>,
    began: Instant,
    until: Instant,
    /// True if all places were taken before: who waits for one would wait anyway.
    was_saturated: bool,
}

/// What a trial found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapacityVerdict {
    /// With fewer calls each waits less.
    Full,
    /// The waits are not due to the calls.
    Slow,
    /// Neither is sure.
    Unclear,
}

impl CapacityTrial {
    /// Begins one with so many places, after waits that were too long.
    pub(super) fn start(
        places: f64,
        before: Vec<JudgedWait>,
        was_full_up: bool,
        now: Instant,
    ) -> CapacityTrial {
        let longest = before.iter().map(|judged| judged.wait.waited).max().unwrap_or_default();
        let lasts = (longest * DURATION_WAITS).clamp(DURATION_MIN, DURATION_MAX);
        CapacityTrial {
            permits: places,
            before,
            during: Vec::new(),
            began: now,
            until: now + lasts,
            was_saturated: was_full_up,
        }
    }

    /// How many calls there may be meanwhile.
    pub(super) fn permits(&self) -> f64 {
        self.permits
    }

    /// True if it ends without a verdict.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now > self.until
    }

    /// True if places are missing for its sake alone.
    pub(super) fn withholds_permits(&self) -> bool {
        !self.was_saturated
    }

    /// Records a wait. Only calls that began during the reduction count.
    pub(super) fn record(&mut self, judged: JudgedWait, tolerance: f64) -> Option<CapacityVerdict> {
        let among_fewer = judged.wait.began >= self.began && f64::from(judged.wait.in_flight) <= self.permits;
        if among_fewer && judged.ratio.is_some() {
            self.during.push(judged);
        }
        let (least, most) = (WAITS_MIN as f64, WAITS_MAX as f64);
        if (self.during.len() as f64) < (self.permits / 2.0).clamp(least, most) {
            return None;
        }
        let does_well = self.median_ratio().is_some_and(|typical| typical <= tolerance);
        Some(match self.gradient() {
            gradient if gradient >= FULL || does_well => CapacityVerdict::Full,
            gradient if gradient < SLOW => CapacityVerdict::Slow,
            _ => CapacityVerdict::Unclear,
        })
    }

    fn gradient(&self) -> f64 {
        let logarithm = |of: &dyn Fn(&[JudgedWait]) -> Option<f64>| {
            let (before, during) = (of(&self.before).unwrap_or(1.0), of(&self.during).unwrap_or(1.0));
            (before.max(1e-6) / during.max(1e-6)).ln()
        };
        logarithm(&median_ratio) / logarithm(&median_in_flight).max(1e-3)
    }

    /// How many times as long as expected calls waited in it.
    pub(super) fn median_ratio(&self) -> Option<f64> {
        median_ratio(&self.during)
    }

    /// All waits, before it and in it.
    pub(super) fn into_waits(self) -> Vec<JudgedWait> {
        self.before.into_iter().chain(self.during).collect()
    }
}
