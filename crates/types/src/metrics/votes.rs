//! The series of votes, cascades and second opinions.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, Histogram, IntCounterVec, IntGaugeVec};

use super::buckets;
use super::factory::MetricFactory;

/// What comes of answering one choice several times.
#[derive(Debug)]
pub struct VoteMetrics {
    pub samples: IntCounterVec,
    pub ended: IntCounterVec,
    pub cascades: IntCounterVec,
    pub judgements: IntCounterVec,
    pub verdicts: IntCounterVec,
    pub verifier_seconds: Histogram,
    pub probes: IntCounterVec,
    pub suspended: IntGaugeVec,
}

impl VoteMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<VoteMetrics, Error> {
        Ok(VoteMetrics {
            samples: make.counter_vec(
                "samples_total",
                "Samples of votes, by outcome",
                &["model", "outcome"],
            )?,
            ended: make.counter_vec("votes_total", "Votes, by why they ended", &["ended"])?,
            cascades: make.counter_vec(
                "cascades_total",
                "Cascades to a stronger model, by the model that was asked first",
                &["model", "outcome"],
            )?,
            judgements: make.counter_vec(
                "judgements_total",
                "Calls of judges to choose among answers, by outcome",
                &["model", "outcome"],
            )?,
            verdicts: make.counter_vec(
                "verdicts_total",
                "Answers given to an operator's verifier, by outcome",
                &["outcome"],
            )?,
            verifier_seconds: make.histogram(
                "verifier_seconds",
                "Time of one verdict",
                buckets::seconds(),
            )?,
            probes: make.counter_vec(
                "probes_total",
                "Probes of how hard a question is, by outcome",
                &["model", "outcome"],
            )?,
            suspended: make.gauge_vec(
                "recipe_suspended",
                "1 while a route's recipe is suspended, since it turned out to be of no use",
                &["route"],
            )?,
        })
    }
}
