//! Sets series to 0 from the start: `rate()` misses the increment with which a series first appears.

use super::Metrics;

impl Metrics {
    /// Sets the counters of a model to 0.
    pub fn zero_model(&self, model: &str) {
        let (requests, thinking) = (&self.requests, &self.thinking);
        for series in [
            &requests.fallbacks,
            &requests.rescues,
            &requests.prompt_tokens,
            &requests.cached_tokens,
            &thinking.estimated,
            &thinking.leaks,
            &thinking.overran,
            &thinking.demotions,
        ] {
            series.with_label_values(&[model]);
        }
        self.money.overrun.with_label_values(&[model]);
    }

    /// Sets the counters of one of its targets to 0, by the words of its faults and of what opens its breaker.
    pub fn zero_target<'w>(
        &self,
        (model, target): (&str, &str),
        faults: impl Iterator<Item = &'w str>,
        causes: impl Iterator<Item = &'w str>,
    ) {
        let backends = &self.backends;
        backends.retries.with_label_values(&[model, target]);
        for fault in faults {
            backends.attempt_failures.with_label_values(&[model, target, fault]);
        }
        for cause in causes {
            backends.trips.with_label_values(&[model, target, cause]);
        }
    }
}
