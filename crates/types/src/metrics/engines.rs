//! The series of local models and their engines.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{CounterVec, Error, IntCounterVec, IntGaugeVec};

use super::factory::MetricFactory;

/// What local models and their engines do.
#[derive(Debug)]
pub struct EngineMetrics {
    pub tokens: IntCounterVec,
    pub up: IntGaugeVec,
    pub restarts: IntCounterVec,
    pub preemptions: IntCounterVec,
    pub loaded: IntGaugeVec,
    pub memory: IntGaugeVec,
    pub loads: IntCounterVec,
    pub load_seconds: CounterVec,
    pub unloads: IntCounterVec,
}

impl EngineMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<EngineMetrics, Error> {
        let by_model_and = |label, name, help| make.counter_vec(name, help, &["model", label]);
        Ok(EngineMetrics {
            tokens: by_model_and(
                "phase",
                "engine_tokens_total",
                "Tokens that the local engine read, found in its cache and wrote",
            )?,
            up: make.gauge_vec(
                "engine_up",
                "1 while a local model takes requests, loaded or not, 0 while its engine is started again or it could not be loaded",
                &["model"],
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
            loaded: make.gauge_vec(
                "engine_loaded",
                "1 while a local model is in the device's memory, 0 while it is not",
                &["model"],
            )?,
            memory: make.gauge_vec(
                "engine_memory_bytes",
                "Bytes of the device's memory that a local model takes now, as counted before it was loaded",
                &["model"],
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
