//! The series of what models are served by.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Counter, Error, IntCounterVec, IntGaugeVec};

use super::factory::MetricFactory;

/// What the models' backends do.
#[derive(Debug)]
pub struct BackendMetrics {
    pub queue_depth: IntGaugeVec,
    pub in_flight: IntGaugeVec,
    pub concurrency_limit: IntGaugeVec,
    pub limit_falls: IntCounterVec,
    pub state: IntGaugeVec,
    pub trips: IntCounterVec,
    pub attempt_failures: IntCounterVec,
    pub retries: IntCounterVec,
    pub hedges: IntCounterVec,
    pub sheds: IntCounterVec,
    pub engine_tokens: IntCounterVec,
    pub withdrawals: IntCounterVec,
    pub event_loop_lag: Counter,
    pub overruns: IntCounterVec,
}

impl BackendMetrics {
    #[expect(clippy::too_many_lines, reason = "a table of series")]
    pub(super) fn new(make: &MetricFactory) -> Result<BackendMetrics, Error> {
        let target = &["model", "target"];
        Ok(BackendMetrics {
            queue_depth: make.gauge_vec(
                "queue_depth",
                "Requests that wait for a place on a target",
                &["model"],
            )?,
            in_flight: make.gauge_vec("in_flight", "Calls under way", target)?,
            concurrency_limit: make.gauge_vec(
                "concurrency_limit",
                "Calls that may be under way at once",
                target,
            )?,
            limit_falls: make.counter_vec(
                "concurrency_limit_falls_total",
                "How often the limit of calls at once fell, by what told that there were too many",
                &["model", "target", "signal"],
            )?,
            state: make.gauge_vec(
                "backend_state",
                "1 where the target may be asked, 0 where it is left alone",
                target,
            )?,
            trips: make.counter_vec(
                "backend_trips_total",
                "How often a target was left alone from then on, by why",
                &["model", "target", "cause"],
            )?,
            attempt_failures: make.counter_vec(
                "attempt_failures_total",
                "Attempts that failed, by the target that failed and whose fault it was",
                &["model", "target", "fault"],
            )?,
            retries: make.counter_vec(
                "retries_total",
                "Attempts after the first, by the target that got them",
                target,
            )?,
            withdrawals: make.counter_vec(
                "capability_withdrawals_total",
                "Capabilities that a model is not offered for a while, since its upstream refused them to a request of our own",
                &["model", "capability"],
            )?,
            hedges: make.counter_vec(
                "hedges_total",
                "Second attempts that were due beside a silent one, by what became of them",
                &["model", "outcome"],
            )?,
            sheds: make.counter_vec(
                "sheds_total",
                "Requests for which no place was found or waited for, by why",
                &["model", "cause"],
            )?,
            event_loop_lag: make.float_counter(
                "event_loop_lag_seconds_total",
                "How late tasks of this process woke, all together: the processor was busy",
            )?,
            engine_tokens: make.counter_vec(
                "engine_tokens_total",
                "Tokens that the local engine read and wrote",
                &["model", "phase"],
            )?,
            overruns: make.counter_vec(
                "target_overruns_total",
                "Calls that a target wrote on with beyond the limit that it was told, until they were hung up on",
                target,
            )?,
        })
    }
}
