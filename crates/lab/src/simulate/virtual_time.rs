//! Virtual time.

use std::time::Duration;

use stint_types::units::Timestamp;

/// Nanoseconds since the world began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VirtualTime(pub u64);

impl VirtualTime {
    /// So many seconds later; nothing is ever earlier.
    pub(super) fn after(self, seconds: f64) -> VirtualTime {
        let later = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        VirtualTime(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// A share of so long.
    pub(super) fn fraction_of(long: Duration, share: f64) -> VirtualTime {
        VirtualTime::default().after(long.as_secs_f64() * share)
    }

    /// Seconds since the world began.
    #[expect(clippy::cast_precision_loss, reason = "microseconds are fine enough for statistics")]
    pub(super) fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Seconds since an earlier moment.
    pub(super) fn since(self, earlier: VirtualTime) -> f64 {
        VirtualTime(self.0.saturating_sub(earlier.0)).seconds()
    }

    /// The same moment on the calendar.
    pub(super) fn to_timestamp(self, start: Timestamp) -> Timestamp {
        start + Duration::from_nanos(self.0)
    }
}
