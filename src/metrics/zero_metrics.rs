//! Series that stand at 0 from the start. One that begins when it first rises hides that rise from an alert on its rate.

use super::Metrics;

impl Metrics {
    /// Begins the counts of what may become of a model's requests.
    pub fn zero_model(&self, model: &str) {
        let (requests, thinking) = (&self.requests, &self.thinking);
        for series in [
            &requests.fallbacks,
            &requests.rescues,
            &thinking.estimated,
            &thinking.leaks,
            &thinking.overran,
            &thinking.demotions,
        ] {
            series.with_label_values(&[model]);
        }
        self.money.overrun.with_label_values(&[model]);
    }

    /// Begins the counts of what may go wrong on one of its targets, by the words for it.
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
