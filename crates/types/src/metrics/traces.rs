//! The series of traces.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, IntCounterVec};

use super::factory::MetricFactory;

/// What becomes of traces.
#[derive(Debug)]
pub struct TraceMetrics {
    pub total: IntCounterVec,
}

impl TraceMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<TraceMetrics, Error> {
        let help = "Traces of requests by outcome: sent, dropped for lack of room, failed at the collector";
        let total = make.counter_vec("traces_total", help, &["outcome"])?;
        for outcome in ["sent", "dropped", "failed"] {
            total.with_label_values(&[outcome]);
        }
        Ok(TraceMetrics { total })
    }
}
