//! The series of what models are served by.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Counter, Error, IntCounterVec, IntGaugeVec};

use super::engines::EngineMetrics;
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
    pub engines: EngineMetrics,
    pub withdrawals: IntCounterVec,
    pub event_loop_lag: Counter,
    pub overruns: IntCounterVec,
}

impl BackendMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<BackendMetrics, Error> {
        let gauge = |name, help| make.gauge_vec(name, help, &["model", "target"]);
        let by_target = |name, help| make.counter_vec(name, help, &["model", "target"]);
        let by_target_and = |label, name, help| make.counter_vec(name, help, &["model", "target", label]);
        let by_model_and = |label, name, help| make.counter_vec(name, help, &["model", label]);
        let waiting = "Requests that wait for a place on a target";
        let falls = "How often the limit on concurrent calls fell, by what signalled overload";
        let trips = "How often a target was taken out of use for a while, by the cause: failures (so many in a row), rate (too small \
                     a share of successes; it is no rate limit) or credential (refused). A Retry-After is no trip";
        let failures = "Attempts that failed, by the target that failed and whose fault it was: caller, backend, overload (no room: a 429, \
                        with Retry-After or without), credential, timeout, gateway";
        let withdrawals = "Capabilities withdrawn from a model for a while, since its upstream refused them in a test by the gateway";
        let hedges = "Hedged attempts beside a silent one, by outcome";
        let sheds = "Requests refused because no target had room in time, by the cause";
        let lag = "How late tasks of this process woke, all together: the processor was busy";
        let overruns = "Calls that were disconnected because the target wrote beyond its limit";
        Ok(BackendMetrics {
            queue_depth: make.gauge_vec("queue_depth", waiting, &["model"])?,
            in_flight: gauge("in_flight", "Calls under way")?,
            concurrency_limit: gauge("concurrency_limit", "Calls that may be under way at once")?,
            limit_falls: by_target_and("signal", "concurrency_limit_falls_total", falls)?,
            state: gauge("backend_state", "1 if the target may be called, 0 while it is left alone")?,
            trips: by_target_and("cause", "backend_trips_total", trips)?,
            attempt_failures: by_target_and("fault", "attempt_failures_total", failures)?,
            retries: by_target("retries_total", "Attempts after the first, by the target that got them")?,
            withdrawals: by_model_and("capability", "capability_withdrawals_total", withdrawals)?,
            hedges: by_model_and("outcome", "hedges_total", hedges)?,
            sheds: by_model_and("cause", "sheds_total", sheds)?,
            event_loop_lag: make.float_counter("event_loop_lag_seconds_total", lag)?,
            engines: EngineMetrics::new(make)?,
            overruns: by_target("target_overruns_total", overruns)?,
        })
    }
}
