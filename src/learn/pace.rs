//! The price of money that makes a budget last: a dual variable for each account.

use serde::{Deserialize, Serialize};

use crate::units::{Money, Timestamp};

/// How quickly the price of money moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceSettings {
    /// What the average spending of a request keeps of itself at each request, below 1.
    pub average: f64,
    /// By how much ln price rises when twice as much is spent as may be.
    pub step: f64,
    /// The highest price of a dollar, in dollars.
    pub price_max: f64,
}

impl Default for PaceSettings {
    fn default() -> PaceSettings {
        PaceSettings { average: 0.95, step: 0.05, price_max: 1e6 }
    }
}

/// How an account keeps to its budget. A settled request is the only event: where there is no traffic nothing moves,
/// and what was saved meanwhile is there for those who come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The average request's cost in dollars.
    cost: f64,
    /// The average time between requests in seconds.
    gap: f64,
    /// How much dearer than at its face a dollar is.
    dual: f64,
    /// What may be spent in a second.
    target: f64,
    /// When the last request settled, in milliseconds since 1970; none yet where negative.
    last: i64,
}

/// Below this the dual counts as nothing; from here it can rise again.
const DUAL_MIN: f64 = 1e-3;

impl Default for Pace {
    fn default() -> Pace {
        Pace { cost: 0.0, gap: 0.0, dual: DUAL_MIN, target: 0.0, last: -1 }
    }
}

impl Pace {
    /// A request has settled at `now` for `spent`; after it `left` may be spent until `end`.
    pub fn settle(
        &mut self,
        now: Timestamp,
        spent: Money,
        left: Money,
        end: Timestamp,
        settings: &PaceSettings,
    ) {
        self.pass(now, settings);
        let remaining = seconds(end.0.saturating_sub(now.0)).max(1.0);
        self.target = left.as_dollars() / remaining;
        let keep = if self.cost > 0.0 { settings.average } else { 0.0 };
        self.cost = keep * self.cost + (1.0 - keep) * spent.as_dollars();
        let fair = self.target * self.gap;
        let excess = if fair > 0.0 { (self.cost / fair - 1.0).min(10.0) } else { 10.0 };
        self.dual = (self.dual * (settings.step * excess).exp()).clamp(DUAL_MIN, settings.price_max);
    }

    /// What a dollar counts: its face and the dual.
    pub fn price(&self) -> f64 {
        if self.dual > DUAL_MIN { 1.0 + self.dual } else { 1.0 }
    }

    /// What is spent now, in dollars a second.
    pub fn rate(&self) -> f64 {
        if self.gap > 0.0 { self.cost / self.gap } else { 0.0 }
    }

    /// What may be spent, in dollars a second.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Averages the time between requests over the last few hundred of them.
    fn pass(&mut self, now: Timestamp, settings: &PaceSettings) {
        let passed = seconds(now.0.saturating_sub(self.last)).max(1e-3);
        let slow = 1.0 - (1.0 - settings.average) / 10.0;
        let keep = if self.gap > 0.0 { slow } else { 0.0 };
        if self.last >= 0 {
            self.gap = keep * self.gap + (1.0 - keep) * passed;
        }
        self.last = now.0;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a span of time, for statistics")]
fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1e3
}
