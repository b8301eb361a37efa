//! The metrics of a fleet: its counters start at zero, its gauges follow the state of its targets.

use crate::Fault;

use super::acquire::SHED_REASONS;
use super::{Fleet, OverloadSignal, TripCause};

impl Fleet {
    /// Begins the counts of what may go wrong: from here on it is asked.
    pub fn zero_metrics(&self) {
        for target in &self.targets {
            let faults = Fault::ALL.map(Fault::as_str).into_iter();
            let causes = [TripCause::Failures, TripCause::Rate, TripCause::Credential]
                .map(TripCause::as_str)
                .into_iter();
            self.metrics.backends.overruns.with_label_values(&[&*self.model, &*target.name]);
            self.metrics.zero_target((&*self.model, &*target.name), faults, causes);
            for signal in [OverloadSignal::Waits, OverloadSignal::Refusals] {
                let labels = &[&*self.model, &*target.name, signal.as_str()];
                self.metrics.backends.limit_falls.with_label_values(labels);
            }
        }
        for why in SHED_REASONS {
            self.metrics.backends.sheds.with_label_values(&[&*self.model, why]);
        }
    }

    /// Updates the gauges of its targets' state and of its queue.
    pub fn update_gauges(&self) {
        let (standings, waiting) = self.status();
        let (series, model) = (&self.metrics.backends, &*self.model);
        series.queue_depth.with_label_values(&[model]).set(i64::try_from(waiting).unwrap_or(i64::MAX));
        for (target, standing) in self.targets.iter().zip(standings) {
            let labels = &[model, &*target.name];
            series.state.with_label_values(labels).set(i64::from(standing.is_available));
            series.in_flight.with_label_values(labels).set(i64::from(standing.in_flight));
            if let Some(places) = standing.limit {
                series.concurrency_limit.with_label_values(labels).set(i64::from(places));
            }
        }
        self.update_limit_drops();
    }

    fn update_limit_drops(&self) {
        let falls = self.lock().targets.take_limit_drops();
        for (target, falls) in self.targets.iter().zip(falls) {
            for (signal, times) in
                [(OverloadSignal::Waits, falls.waits), (OverloadSignal::Refusals, falls.refusals)]
            {
                let labels = &[&*self.model, &*target.name, signal.as_str()];
                self.metrics.backends.limit_falls.with_label_values(labels).inc_by(times);
            }
        }
    }

    /// Removes the gauges of its targets' state, since they get no more calls. Counters stay.
    pub fn remove_gauges(&self) {
        let (series, model) = (&self.metrics.backends, &*self.model);
        // A series that was never set need not be removed.
        let _ = series.queue_depth.remove_label_values(&[model]);
        for target in &self.targets {
            for gauge in [&series.state, &series.in_flight, &series.concurrency_limit] {
                let _ = gauge.remove_label_values(&[model, &*target.name]);
            }
        }
    }
}
