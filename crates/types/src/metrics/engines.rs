//! The series of local models and their engines.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{CounterVec, Error, GaugeVec, IntCounterVec, IntGaugeVec};

use super::factory::MetricFactory;

/// What local models and their engines do.
#[derive(Debug)]
pub struct EngineMetrics {
    pub tokens: IntCounterVec,
    pub up: IntGaugeVec,
    pub restarts: IntCounterVec,
    pub preemptions: IntCounterVec,
    pub requests_running: IntGaugeVec,
    pub requests_waiting: IntGaugeVec,
    pub kv_cache_usage: GaugeVec,
    pub loaded: IntGaugeVec,
    pub memory: IntGaugeVec,
    pub loads: IntCounterVec,
    pub load_seconds: CounterVec,
    pub unloads: IntCounterVec,
}

impl EngineMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<EngineMetrics, Error> {
        let by_model_and = |label, name, help| make.counter_vec(name, help, &["model", label]);
        let gauge = |name, help| make.gauge_vec(name, help, &["model"]);
        Ok(EngineMetrics {
            tokens: by_model_and(
                "phase",
                "engine_tokens_total",
                "Tokens that the local engine read, found in its cache and wrote",
            )?,
            up: gauge(
                "engine_up",
                "1 while a local model takes requests, loaded or not, 0 while its engine is started again or it could not be loaded",
            )?,
            restarts: by_model_and(
                "cause",
                "engine_restarts_total",
                "Restarts of a local engine after a failure, by its cause",
            )?,
            preemptions: make.counter_vec(
                "engine_preemptions_total",
                "Generations of a local engine that were preempted for lack of room in its cache and computed again",
                &["model"],
            )?,
            requests_running: gauge(
                "engine_requests_running",
                "Generations that a local engine computes now",
            )?,
            requests_waiting: gauge(
                "engine_requests_waiting",
                "Generations that wait in a local engine's queue, or until its model is loaded",
            )?,
            kv_cache_usage: make.float_gauge_vec(
                "engine_kv_cache_usage_ratio",
                "Share of a local engine's key-value cache that running generations hold, 0 to 1",
                &["model"],
            )?,
            loaded: gauge(
                "engine_loaded",
                "1 while a local model is in the device's memory, 0 while it is not",
            )?,
            memory: gauge(
                "engine_memory_bytes",
                "Bytes of the device's memory that a local model takes now, as counted before it was loaded",
            )?,
            loads: by_model_and(
                "result",
                "engine_loads_total",
                "Loads of a local model, by their result: ok, failed",
            )?,
            load_seconds: make.float_counter_vec(
                "engine_load_seconds_total",
                "Time that the loads of a local model took which succeeded",
                &["model"],
            )?,
            unloads: by_model_and(
                "reason",
                "engine_unloads_total",
                "Local models that were let go: nobody used them for their keep_alive (idle), or another needed the memory (room)",
            )?,
        })
    }
}
