//! The most concurrent calls that a target served well in the last minute.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How long a measurement counts.
const PEAK_WINDOW: Duration = Duration::from_secs(60);

/// How many calls at once were served well in the last minute. Entries that can no longer be the most are dropped, so
/// the first one is always the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct PeakServed(VecDeque<(Instant, f64)>);

impl PeakServed {
    /// Notes that so many calls at once were served well.
    pub(super) fn record(&mut self, calls: f64, now: Instant) {
        while self.0.back().is_some_and(|(_, less)| *less <= calls) {
            self.0.pop_back();
        }
        self.0.push_back((now, calls));
        self.prune(now);
    }

    /// The most of the last minute.
    pub(super) fn peak(&mut self, now: Instant) -> f64 {
        self.prune(now);
        self.0.front().map_or(0.0, |(_, most)| *most)
    }

    fn prune(&mut self, now: Instant) {
        while self.0.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > PEAK_WINDOW) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_the_last_minute_is_known() {
        let (mut served, began) = (PeakServed::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        for (second, calls) in [(0, 10.0), (1, 40.0), (2, 30.0), (50, 20.0)] {
            served.record(calls, at(second));
        }
        for (second, most) in [(50, 40.0), (61, 40.0), (62, 30.0), (63, 20.0), (111, 0.0)] {
            assert!((served.peak(at(second)) - most).abs() < 1e-9, "at {second}");
        }
    }
}
