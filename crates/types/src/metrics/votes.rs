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
                "Answers to one choice beside each other, by what became of them",
                &["model", "outcome"],
            )?,
            ended: make.counter_vec(
                "votes_total",
                "Votes, by why no more samples were asked for",
                &["ended"],
            )?,
            cascades: make.counter_vec(
                "cascades_total",
                "Answers that a stronger model was asked for, by the model that was asked first",
                &["model", "outcome"],
            )?,
            judgements: make.counter_vec(
                "judgements_total",
                "Judges asked to choose among answers, by what came of it",
                &["model", "outcome"],
            )?,
            verdicts: make.counter_vec(
                "verdicts_total",
                "Answers given to an operator's verifier, by what came of it",
                &["outcome"],
            )?,
            verifier_seconds: make.histogram(
                "verifier_seconds",
                "Time of one verdict",
                buckets::seconds(),
            )?,
            probes: make.counter_vec(
                "probes_total",
                "Drafts considered to learn how hard a question is, by what came of it",
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
