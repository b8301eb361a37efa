//! The settings of the gateway: limits on a request's life.

use std::time::Duration;

use crate::execute::EventLimits;
use stint_types::units::Chance;

/// Limits of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a request may run where its caller states no deadline.
    pub time_max: Duration,
    /// The latest deadline that a caller may state.
    pub deadline_max: Duration,
    /// How long the last chunk waits for its settlement to be durable.
    pub settle_patience: Duration,
    /// How often a long run is noted in the ledger, for the case that nobody comes back to settle it.
    pub meter_every: Duration,
    /// How long a request waits for money that other open requests merely hold.
    pub wait_max: Duration,
    /// How far a slow caller may lag behind before its backend is paused.
    pub events: EventLimits,
    /// The most choices (`n`) of one request.
    pub choices_max: u32,
    /// What share of answers the first reservation of one covers, where money is limited.
    pub opening_quantile: Chance,
    /// The most requests in flight at once; more are refused as overload.
    pub flights_max: usize,
}

impl Settings {
    /// The same, where the answer to a request with an idempotency key is remembered for so long: none may run for longer. Zero
    /// remembers none.
    #[must_use]
    pub(crate) fn remembered_for(self, keep: Duration) -> Settings {
        let deadline_max = if keep.is_zero() { self.deadline_max } else { self.deadline_max.min(keep) };
        Settings { deadline_max, ..self }
    }
}
