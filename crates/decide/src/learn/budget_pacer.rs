//! The price of money that makes a budget last: a dual variable for each limit of money with a window.
//!
//! A dollar counts its face at least, which is a price of 1: a limit is no aim. The price moves on a logarithmic scale,
//! by a step for each request's share of the money too much or too little:
//!
//! ```text
//! ln price ← [ln price + step·(excess + debt / PAYBACK)]₊
//! excess = cost / fair − 1        fair = left / requests still to come        debt = Σ excess
//! ```
//!
//! That is the usual update of a dual variable with three changes. On a logarithmic scale one step suits prices of 2 and
//! of 200. Without an average before it the price answers within some tens of requests rather than hundreds: an average
//! delays the loop, and lets it swing. And what was spent too soon is saved soon after, rather than by the window's end.
//! The first requests move the price further, since nothing is known of it yet. `fair` is reckoned again at each request
//! from what is left, so whatever else was missed is made up until the window ends. The debt is bounded: what could not
//! be spent is no reason for a spree, and a burst that nothing could avert is forgiven.

use serde::{Deserialize, Serialize};

use stint_types::units::{Money, Timestamp};

/// How quickly the price of money moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceSettings {
    /// By how much ln price rises when a request costs twice its share.
    pub step: f64,
    /// What the average spending that is shown keeps of itself at each request, below 1.
    pub average: f64,
    /// The highest price of a dollar, in dollars.
    pub price_max: f64,
    /// For so many seconds before the first request there were none, as far as one knows: a burst at first is not taken
    /// for what goes on until the window ends. Nothing if requests are known to come evenly.
    pub unseen: f64,
}

impl Default for PaceSettings {
    fn default() -> PaceSettings {
        PaceSettings { step: 0.1, average: 0.95, price_max: 10_000.0, unseen: 600.0 }
    }
}

/// What is left of a limit, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingBudget {
    /// When the window began.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// What may still be spent in it: the limit less what was settled and what is expected of requests on their way.
    pub left: Money,
}

/// How spending keeps to a limit. Requests move the price, and so do long silences: what was saved meanwhile is there for those
/// who come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetPacer {
    /// ln price, from 0 on.
    exponent: f64,
    /// What was spent too much of late, in fair shares.
    debt: f64,
    /// The average request's cost in dollars.
    cost: f64,
    /// A request's share of what is left, in dollars.
    fair: f64,
    /// What may be spent in a second.
    target: f64,
    arrivals: ArrivalRate,
}

/// How often requests come, over about one window back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct ArrivalRate {
    /// All requests ever.
    count: f64,
    /// Those of late.
    recent: f64,
    /// Over how many seconds.
    elapsed: f64,
    /// When the last one came, in milliseconds since 1970.
    last: i64,
}

/// While fewer requests than this have come, one moves the price further: by n/(n + all) where that is more than a step.
const EARLY: f64 = 5.0;
/// Over how many requests a debt is paid back.
const PAYBACK: f64 = 150.0;
/// The bounds of a debt, in fair shares.
const DEBT: std::ops::RangeInclusive<f64> = -20.0..=100.0;
/// The furthest that one request moves ln price.
const MOVE_MAX: f64 = 3.0;
/// So many requests' usual time without one is chance; after it, those that do not come spend nothing.
const SILENCE: f64 = 5.0;
/// One silence counts as so many requests at most.
const SILENT_MAX: f64 = 20.0;
/// Towards a window's end, at least so many requests are thought to come: the last one does not get all that is left.
const REQUESTS_MIN: f64 = 20.0;
/// Requests are counted back over a window, and over no more than so many seconds: a week has all that recurs.
const MEMORY_MAX: f64 = 7.0 * 86_400.0;

impl BudgetPacer {
    /// A request that is expected to cost so much sets out.
    pub fn record_expected(
        &mut self,
        now: Timestamp,
        cost: Money,
        budget: &RemainingBudget,
        settings: &PaceSettings,
    ) {
        self.apply_silence(now, settings);
        let remaining = seconds(now, budget.end).max(1e-3);
        self.arrivals.record(now, budget, settings.unseen);
        let coming = (self.arrivals.rate() * remaining).max(REQUESTS_MIN);
        self.target = budget.left.as_dollars() / remaining;
        self.fair = budget.left.as_dollars() / coming;
        self.shift(cost.as_dollars() / self.fair.max(f64::MIN_POSITIVE) - 1.0, self.debt / PAYBACK, settings);
    }

    /// One that had been expected to cost so much has cost `spent`.
    pub fn settle(&mut self, expected: Money, spent: Money, settings: &PaceSettings) {
        let keep = if self.cost > 0.0 { settings.average } else { 0.0 };
        self.cost = keep * self.cost + (1.0 - keep) * spent.as_dollars();
        let more = (spent.as_dollars() - expected.as_dollars()) / self.fair.max(f64::MIN_POSITIVE);
        self.debt = (self.debt + more).clamp(*DEBT.start(), *DEBT.end());
        // As far as the price would have moved for what it cost, had that been known: both moves are bounded, so that what
        // costs far more than its share is not let off for costing less than was expected.
        let moved = |cost: Money| {
            self.bounded_step(cost.as_dollars() / self.fair.max(f64::MIN_POSITIVE) - 1.0, settings)
        };
        self.move_by(moved(spent) - moved(expected), settings);
    }

    /// What a dollar counts now, in dollars; its face at least.
    pub fn price(&self) -> f64 {
        self.exponent.exp()
    }

    /// The same at a moment: while fewer requests come than did, the price falls.
    pub fn price_at(&self, now: Timestamp, settings: &PaceSettings) -> f64 {
        let mut rested = *self;
        rested.apply_silence(now, settings);
        rested.price()
    }

    /// So much may be spent until the window ends where it was so much before: the more that is, the less of what was saved
    /// for its sake is still called for, and with twice as much nothing is.
    pub fn raise_limit(&mut self, before: Money, after: Money) {
        let times = after.as_dollars() / before.as_dollars().max(f64::MIN_POSITIVE);
        let kept = (2.0 - times).clamp(0.0, 1.0);
        (self.exponent, self.debt) = (self.exponent * kept, self.debt * kept);
    }

    /// Requests that were to be expected since the last one and did not come have cost nothing.
    fn apply_silence(&mut self, now: Timestamp, settings: &PaceSettings) {
        let passed = seconds(Timestamp(self.arrivals.last), now).max(0.0);
        let missing = (passed * self.arrivals.rate() - SILENCE).clamp(0.0, SILENT_MAX);
        if self.arrivals.count >= 1.0 && missing > 0.0 {
            self.shift(-missing, 0.0, settings);
        }
    }

    /// What is spent now, in dollars a second.
    pub fn rate(&self) -> f64 {
        self.cost * self.arrivals.rate()
    }

    /// What may be spent until the window ends, in dollars a second.
    pub fn target(&self) -> f64 {
        self.target
    }

    fn shift(&mut self, excess: f64, payment: f64, settings: &PaceSettings) {
        self.debt = (self.debt + excess).clamp(*DEBT.start(), *DEBT.end());
        self.move_by(self.bounded_step(excess + payment, settings), settings);
    }

    /// By how much one request moves ln price.
    fn bounded_step(&self, excess: f64, settings: &PaceSettings) -> f64 {
        let step = settings.step.max(EARLY / (EARLY + self.arrivals.count));
        (step * excess).clamp(-MOVE_MAX, MOVE_MAX)
    }

    fn move_by(&mut self, shift: f64, settings: &PaceSettings) {
        self.exponent = (self.exponent + shift).clamp(0.0, settings.price_max.max(1.0).ln());
    }
}

impl ArrivalRate {
    /// One more, in this window.
    fn record(&mut self, now: Timestamp, budget: &RemainingBudget, unseen: f64) {
        let window = seconds(budget.start, budget.end);
        let memory = window.clamp(1.0, MEMORY_MAX);
        if self.count < 1.0 {
            self.elapsed = unseen.clamp(0.0, memory);
            self.recent = if unseen > 0.0 { 1.0 } else { 0.0 };
        } else {
            let passed = seconds(Timestamp(self.last), now).max(0.0);
            let kept = (-passed / memory).exp();
            self.recent = self.recent * kept + 1.0;
            self.elapsed = self.elapsed * kept + memory * (1.0 - kept);
        }
        self.count += 1.0;
        self.last = now.0;
    }

    /// Requests a second.
    fn rate(&self) -> f64 {
        if self.elapsed > 0.0 { self.recent / self.elapsed } else { 0.0 }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a span of time, for statistics")]
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.0.saturating_sub(from.0) as f64 / 1e3
}
