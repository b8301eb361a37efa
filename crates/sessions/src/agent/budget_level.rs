//! `BudgetLevel`: how much of a budget is left, in four words.

use super::{BudgetThresholds, TrackerMessages};

/// How much is left, in four words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetLevel {
    /// Hardly anything.
    Critical,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Plenty.
    High,
}

impl BudgetLevel {
    /// The regime where such a share is left of what is scarcest.
    pub fn of(left: f64, thresholds: &BudgetThresholds) -> BudgetLevel {
        match left {
            left if left >= thresholds.high.get() => BudgetLevel::High,
            left if left >= thresholds.medium.get() => BudgetLevel::Medium,
            left if left >= thresholds.low.get() => BudgetLevel::Low,
            _ => BudgetLevel::Critical,
        }
    }

    /// The tracker's line at this level.
    pub fn message(self, messages: &TrackerMessages) -> &str {
        match self {
            BudgetLevel::Critical => &messages.critical,
            BudgetLevel::Low => &messages.low,
            BudgetLevel::Medium => &messages.medium,
            BudgetLevel::High => &messages.high,
        }
    }
}
