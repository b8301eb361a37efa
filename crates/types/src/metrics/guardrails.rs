//! The series of guardrails.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, HistogramVec, IntCounterVec};

use super::buckets;
use super::factory::MetricFactory;

/// What guardrails say, and how long they take.
#[derive(Debug)]
pub struct GuardrailMetrics {
    pub verdicts: IntCounterVec,
    pub seconds: HistogramVec,
}

impl GuardrailMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<GuardrailMetrics, Error> {
        let help = "What guardrails said of requests and answers: allow, refuse, rewrite; failed and too_late where they said nothing";
        let verdicts =
            make.counter_vec("guardrail_verdicts_total", help, &["guardrail", "stage", "verdict"])?;
        let help = "How long guardrails took to judge a request or an answer, in seconds";
        let seconds =
            make.histogram_vec("guardrail_seconds", help, &["guardrail", "stage"], buckets::seconds())?;
        Ok(GuardrailMetrics { verdicts, seconds })
    }
}
