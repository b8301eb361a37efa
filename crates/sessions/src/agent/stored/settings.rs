//! The settings of stored responses: which are stored, and for how long.

use std::time::Duration;

/// What is kept of responses, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// False if nothing is ever kept.
    pub store: bool,
    /// How long a response is kept.
    pub keep: Duration,
    /// The largest response that is kept, input and output together, in bytes.
    pub response_max: usize,
    /// The most that is kept for one account, in bytes; beyond it the oldest goes.
    pub account_max: usize,
    /// The most that a continued response may bring along, in bytes.
    pub history_max: usize,
    /// What one account may write into stored responses, and again into conversations beside its requests, in bytes a second; sixteen
    /// times as much at once.
    pub write_rate: usize,
    /// The most responses that wait for the store at once.
    pub waiting_max: usize,
    /// How long an answer waits until it is kept.
    pub patience: Duration,
    /// How often what is older than `keep` is deleted.
    pub sweep: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            store: true,
            keep: Duration::from_secs(30 * 24 * 3600),
            response_max: 4 << 20,
            account_max: 256 << 20,
            history_max: 16 << 20,
            write_rate: 1 << 20,
            waiting_max: 64,
            patience: Duration::from_secs(2),
            sweep: Duration::from_secs(60),
        }
    }
}
