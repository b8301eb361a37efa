//! A moving average of a target's time to first token. It follows a rise at once and a fall slowly.

use std::time::Duration;

use tokio::time::Instant;

/// How fast old measurements are forgotten, in seconds.
const MEMORY: f64 = 10.0;

/// What each call under way adds at least, in seconds: before anything is measured, and for a target so quick that its
/// time shows nothing about its queue.
const CALL_MIN: f64 = 0.01;

/// How much the newest answer weighs in what is usual.
const WEIGHT: f64 = 0.2;

/// A silence of so many times what is usual is clearly beyond that.
const UNUSUAL: f64 = 4.0;
/// A shorter one never is, in seconds.
const UNUSUAL_MIN: f64 = 5.0;
/// The same for a target without answers yet, in seconds.
const UNUSUAL_NEW: f64 = 30.0;

/// One target's time to the first token.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latency {
    seconds: f64,
    at: Option<Instant>,
    /// What calls that were answered waited, on average.
    usual: Option<f64>,
}

impl Latency {
    /// Takes a measurement. A longer one counts whole; a shorter one by the time since the last.
    pub(super) fn record(&mut self, waited: Duration, now: Instant) {
        let newest = waited.as_secs_f64();
        self.usual = Some(self.usual.map_or(newest, |usual| usual + WEIGHT * (newest - usual)));
        self.seconds = match self.at {
            Some(at) if newest < self.seconds => {
                let kept = decay(at, now);
                self.seconds * kept + newest * (1.0 - kept)
            }
            _ => newest,
        };
        self.at = Some(now);
    }

    /// Takes the silence of a call that nobody waits for any more: a token would have taken so long at least. It counts
    /// where that is longer than was expected.
    pub(super) fn record_silence(&mut self, waited: Duration, now: Instant) {
        if waited.as_secs_f64() > self.expected(0, now) {
            (self.seconds, self.at) = (waited.as_secs_f64(), Some(now));
        }
    }

    /// Whether a silence is clearly beyond what is usual here: four times what answered calls wait on average, and five
    /// seconds at least; half a minute where none was ever answered. `share` is how long this call should wait by its prompt,
    /// against a usual one.
    pub(super) fn is_unusual(&self, waited: Duration, share: f64) -> bool {
        let most = self.usual.map_or(UNUSUAL_NEW, |usual| (UNUSUAL * usual * share).max(UNUSUAL_MIN));
        waited.as_secs_f64() > most
    }

    /// How long one more call waits for its first token behind so many others, in seconds. One that was not measured
    /// for long is thought of better and better, so that it is tried again.
    pub(super) fn expected(&self, others: u32, now: Instant) -> f64 {
        let alone = self.at.map_or(0.0, |at| self.seconds * decay(at, now));
        alone + f64::from(others) * alone.max(CALL_MIN)
    }
}

fn decay(at: Instant, now: Instant) -> f64 {
    (-now.saturating_duration_since(at).as_secs_f64() / MEMORY).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_news_counts_at_once_good_news_by_and_by_and_old_news_fades() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut latency = Latency::default();
        assert!(latency.expected(0, now) < 1e-9, "not measured yet: it is tried");
        assert!((latency.expected(9, now) - 0.09).abs() < 1e-9, "but not by everybody at once");
        latency.record(Duration::from_millis(100), now);
        latency.record(Duration::from_millis(900), now);
        assert!((latency.expected(0, now) - 0.9).abs() < 1e-9);
        assert!((latency.expected(2, now) - 2.7).abs() < 1e-9);
        latency.record(Duration::from_millis(100), after(10));
        let part = (-1.0_f64).exp();
        assert!((latency.expected(0, after(10)) - (0.9 * part + 0.1 * (1.0 - part))).abs() < 1e-9);
        assert!(latency.expected(0, after(100)) < 0.001);
    }

    #[test]
    fn a_silence_counts_where_it_is_longer_than_expected_and_changes_nothing_of_what_is_usual() {
        let now = Instant::now();
        let mut latency = Latency::default();
        let is_unusual = |latency: &Latency, seconds| latency.is_unusual(Duration::from_secs(seconds), 1.0);
        assert!(!is_unusual(&latency, 30) && is_unusual(&latency, 31));
        latency.record(Duration::from_secs(2), now);
        latency.record_silence(Duration::from_secs(1), now);
        assert!((latency.expected(0, now) - 2.0).abs() < 1e-9);
        latency.record_silence(Duration::from_secs(60), now);
        assert!((latency.expected(0, now) - 60.0).abs() < 1e-9);
        assert!(!is_unusual(&latency, 8) && is_unusual(&latency, 9));
        assert!(
            !latency.is_unusual(Duration::from_secs(79), 10.0),
            "a prompt that is ten times as long to read"
        );
        let mut quick = Latency::default();
        quick.record(Duration::from_millis(100), now);
        assert!(!is_unusual(&quick, 5), "nobody is blamed for five seconds");
    }
}
