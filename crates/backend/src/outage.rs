//! Why a target is not there, where it says so itself.

use std::sync::Arc;
use std::time::Duration;

/// Why a target takes no calls now, and when it may again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetOutage {
    /// Why, for callers.
    pub reason: Arc<str>,
    /// When it may take calls again by itself. Nothing if it needs another configuration.
    pub retry_in: Option<Duration>,
}
