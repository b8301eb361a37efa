//! The time spans that sums are stored for: quarters of an hour, days of UTC, all time.

use stint_types::units::Timestamp;

/// The quarter of an hour that holds a moment, in milliseconds.
pub const QUARTER_HOUR_MS: i64 = 15 * 60 * 1000;

/// A day of UTC, in milliseconds.
const DAY: i64 = 24 * 3600 * 1000;

/// How long the times are by which a seal sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RollupSpan {
    /// Quarters of an hour: everybody's days begin with one.
    Quarter,
    /// Days of UTC.
    Day,
    /// All time.
    All,
}

impl RollupSpan {
    /// All of them.
    pub const ALL: [RollupSpan; 3] = [RollupSpan::Quarter, RollupSpan::Day, RollupSpan::All];

    /// In milliseconds; 0 for all time.
    pub fn length(self) -> i64 {
        match self {
            RollupSpan::Quarter => QUARTER_HOUR_MS,
            RollupSpan::Day => DAY,
            RollupSpan::All => 0,
        }
    }

    /// When the one began in which a moment is; 0 for all time.
    pub fn start(self, moment: Timestamp) -> Timestamp {
        match self {
            RollupSpan::All => Timestamp(0),
            _ => Timestamp(moment.0.div_euclid(self.length()).saturating_mul(self.length())),
        }
    }

    /// When the first one begins, at this moment or later.
    pub fn next(self, moment: Timestamp) -> Timestamp {
        let start = self.start(moment);
        if start < moment { Timestamp(start.0.saturating_add(self.length())) } else { start }
    }
}
