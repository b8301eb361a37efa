//! The series of thoughts and answers.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, HistogramVec, IntCounterVec};

use super::buckets;
use super::factory::MetricFactory;

/// What budgets are given and used.
#[derive(Debug)]
pub struct ThinkingMetrics {
    pub planned: HistogramVec,
    pub used: HistogramVec,
    pub ended: IntCounterVec,
    pub overshoot: HistogramVec,
    pub solution_used: HistogramVec,
    pub solution_ended: IntCounterVec,
    pub estimated: IntCounterVec,
    pub leaks: IntCounterVec,
    pub overran: IntCounterVec,
    pub demotions: IntCounterVec,
}

impl ThinkingMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<ThinkingMetrics, Error> {
        let (model, both) = (&["model"], &["model", "class"]);
        let spread = |name, help, labels| make.histogram_vec(name, help, labels, buckets::tokens());
        Ok(ThinkingMetrics {
            planned: spread("thinking_tokens_planned", "Thinking budgets given", both)?,
            used: spread("thinking_tokens_used", "Thinking tokens used", both)?,
            ended: make.counter_vec(
                "thinking_ended_total",
                "Thoughts by how they ended",
                &["model", "ended"],
            )?,
            overshoot: spread("thinking_overshoot_tokens", "Thinking tokens used beyond the budget", model)?,
            solution_used: spread("solution_tokens_used", "Solution tokens used", model)?,
            solution_ended: make.counter_vec(
                "solution_ended_total",
                "Answers by what ended them",
                &["model", "ended"],
            )?,
            estimated: make.counter_vec(
                "estimated_usage_total",
                "Answers whose usage was estimated, not reported",
                model,
            )?,
            leaks: make.counter_vec(
                "leaks_total",
                "Sentences of answers that continued a cut thought",
                model,
            )?,
            overran: make.counter_vec(
                "thinking_overran_total",
                "Requests on which a provider's own thinking budget did not hold",
                model,
            )?,
            demotions: make.counter_vec(
                "demotions_total",
                "Models whose own thinking budget is no longer relied on, for one account or for all",
                model,
            )?,
        })
    }
}
