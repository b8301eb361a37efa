//! The series of the server itself: what was built, what it answers, and how its runtime stands.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Counter, Error, Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::factory::MetricFactory;

/// What runs, what it answers, and how its runtime stands.
#[derive(Debug)]
pub struct ServerMetrics {
    pub build: IntGaugeVec,
    pub responses: IntCounterVec,
    pub workers: IntGauge,
    pub alive_tasks: IntGauge,
    pub global_queue_depth: IntGauge,
    pub busy: Counter,
    pub log_lines_dropped: IntCounter,
    pub clock_jumps: Gauge,
}

impl ServerMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<ServerMetrics, Error> {
        let build = "1, with the running version, its commit if that was set at the build, and its features";
        let responses = "Answers by endpoint and class of status; other for unknown paths, and for what is refused before its path is read";
        let queue = "Tasks that wait for any worker, apart from those in the workers' own queues";
        let busy = "Time in which the runtime's workers were busy, all together";
        let lost = "Lines of the log that standard error did not take: nobody reads it fast enough, or its disk is full";
        let jumps = "Jumps of the machine's clock since the start, all together: below 0 it went backwards; restart where it is not 0";
        Ok(ServerMetrics {
            build: make.gauge_vec("build_info", build, &["version", "commit", "features"])?,
            responses: make.counter_vec("http_responses_total", responses, &["endpoint", "class"])?,
            workers: make.gauge("runtime_workers", "Threads that run the tasks of the server")?,
            alive_tasks: make.gauge("runtime_alive_tasks", "Tasks of the server that have not ended")?,
            global_queue_depth: make.gauge("runtime_global_queue_depth", queue)?,
            busy: make.float_counter("runtime_busy_seconds_total", busy)?,
            log_lines_dropped: make.counter("log_lines_dropped_total", lost)?,
            clock_jumps: make.float_gauge("clock_jumps_seconds", jumps)?,
        })
    }
}
