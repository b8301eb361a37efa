//! The settings of idempotency keys.

use std::time::Duration;

/// What is remembered, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a key is remembered; zero switches idempotency off.
    pub keep: Duration,
    /// The largest body that is kept, in bytes.
    pub answer_max: usize,
    /// Whether streamed answers are kept too.
    pub replay_streams: bool,
    /// The most requests with a key at once.
    pub running_max: usize,
    /// How long a beginning may take to become durable before the request is refused.
    pub begin_max: Duration,
    /// How long an answer waits until it is kept.
    pub patience: Duration,
    /// How often what is older than `keep` is deleted.
    pub sweep: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            keep: Duration::from_secs(24 * 3600),
            answer_max: 1 << 20,
            replay_streams: false,
            running_max: 1024,
            begin_max: Duration::from_secs(5),
            patience: Duration::from_secs(2),
            sweep: Duration::from_secs(60),
        }
    }
}
