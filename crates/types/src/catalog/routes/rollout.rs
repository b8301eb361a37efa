//! How an operator turns on the enforcement of decisions: first only observed, or for a share of the traffic.

use std::sync::Arc;

use crate::units::Chance;

/// Whether what a route decides holds. What a caller states, and every limit, holds always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RolloutMode {
    /// It does.
    #[default]
    On,
    /// It is decided and counted what would have been cut and saved, and nothing is changed: as `Off` beside that.
    Observe,
    /// The first of the route's models that can answers, and thinks as long as it likes within what callers state and
    /// limits leave.
    Off,
}

/// A part of a route's traffic that goes by another route's rules.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSplit {
    /// The other route.
    pub route: Arc<str>,
    /// How much of the traffic.
    pub fraction: Chance,
}

impl RolloutMode {
    /// The word in configuration, metrics and the decision log.
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutMode::On => "on",
            RolloutMode::Observe => "observe",
            RolloutMode::Off => "off",
        }
    }
}
