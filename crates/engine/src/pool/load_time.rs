//! How long it takes to load a model: as it was measured, and before that by the bytes of its weights.

use std::time::Duration;

/// What is guessed of a model that was never loaded here: so much in any case, to open a device and make its kernels,
const START_USUAL: Duration = Duration::from_secs(1);
/// and so many bytes of weights a second. A disk may be slower, but a guess that is too long would keep requests with a deadline
/// from ever showing it.
const BYTES_PER_SECOND: u64 = 1_000_000_000;

/// How much the newest measurement weighs.
const WEIGHT: f64 = 0.5;

/// The time that a model's loading takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadTime {
    expected: Duration,
    is_measured: bool,
}

impl LoadTime {
    /// That of weights which were never loaded.
    pub(super) fn guess(weights: u64) -> Self {
        let reading = Duration::from_millis(weights.saturating_mul(1000) / BYTES_PER_SECOND);
        Self { expected: START_USUAL.saturating_add(reading), is_measured: false }
    }

    /// It took so long.
    pub(super) fn record(&mut self, took: Duration) {
        self.expected =
            if self.is_measured { self.expected.mul_f64(1.0 - WEIGHT) + took.mul_f64(WEIGHT) } else { took };
        self.is_measured = true;
    }

    pub(super) fn expected(&self) -> Duration {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_loaded_is_guessed_by_its_bytes_and_what_was_goes_by_its_last_times() {
        let mut time = LoadTime::guess(4_000_000_000);
        assert_eq!(time.expected(), Duration::from_secs(5));
        time.record(Duration::from_secs(6));
        assert_eq!(time.expected(), Duration::from_secs(6));
        time.record(Duration::from_secs(2));
        assert_eq!(time.expected(), Duration::from_secs(4));
    }
}
