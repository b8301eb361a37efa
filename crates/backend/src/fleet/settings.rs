//! The settings of a fleet.

use std::time::Duration;

use super::breaker::BreakerSettings;
use super::limit::ConcurrencySettings;
use super::retry::RetrySettings;

/// How the targets of a model are treated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// When one is left alone.
    pub breaker: BreakerSettings,
    /// When a call is tried again.
    pub retry: RetrySettings,
    /// After how long a silence a second target is called in parallel; nothing if that is off.
    pub hedge_after: Option<Duration>,
    /// How many calls each takes at once; `None` if it reports that itself, as the local engine does.
    pub concurrency: Option<ConcurrencySettings>,
    /// The most requests that wait for a place.
    pub queue_max: usize,
    /// The longest that one waits.
    pub wait_max: Duration,
    /// How often engines are asked for their load.
    pub load_every: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            breaker: BreakerSettings::default(),
            retry: RetrySettings::default(),
            hedge_after: None,
            concurrency: Some(ConcurrencySettings::default()),
            queue_max: 256,
            wait_max: Duration::from_secs(30),
            load_every: Duration::from_secs(2),
        }
    }
}
