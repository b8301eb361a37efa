//! The series of learning.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, HistogramVec, IntCounterVec, IntGaugeVec};

use super::buckets;
use super::factory::MetricFactory;

/// What is learned.
#[derive(Debug)]
pub struct LearningMetrics {
    pub feedback_score: HistogramVec,
    pub regret: HistogramVec,
    pub dropped: IntCounterVec,
    pub observations: IntGaugeVec,
    pub alarms: IntCounterVec,
}

impl LearningMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<LearningMetrics, Error> {
        Ok(LearningMetrics {
            feedback_score: make.histogram_vec(
                "feedback_score",
                "Judgements of answers, from 0 for wrong to 1 for right",
                &["model"],
                buckets::shares(),
            )?,
            regret: make.histogram_vec(
                "regret",
                "Predicted value that the chosen offer gave up against the best one, in dollars",
                &["route"],
                buckets::dollars(),
            )?,
            dropped: make.counter_vec(
                "outcomes_dropped_total",
                "Outcomes that were not learned from, stored or logged, by where they were dropped",
                &["at"],
            )?,
            observations: make.gauge_vec(
                "learned_observations",
                "Outcomes and judgements of answers that this process has learned from",
                &["model"],
            )?,
            alarms: make.counter_vec(
                "model_alarms_total",
                "Alarms that a model has changed, since its answers were better or worse than predicted for a long time",
                &["model"],
            )?,
        })
    }
}
