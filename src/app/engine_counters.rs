//! Counts in the metrics what the engines of a local model do: at each look what is new since the last, and at their end the rest.

use std::sync::{Arc, Mutex, PoisonError};

use stint_engine::{EngineCounts, EngineTotals, FailureCause, UnloadReason};
use stint_types::metrics::EngineMetrics;

/// What of a model's engines the metrics have.
#[derive(Debug)]
pub(super) struct EngineCounters {
    model: Arc<str>,
    counted: Mutex<CountedWork>,
}

#[derive(Debug, Default)]
struct CountedWork {
    counts: EngineCounts,
    totals: EngineTotals,
}

impl EngineCounters {
    /// The counters of a model that has not run yet.
    pub(super) fn new(model: Arc<str>) -> EngineCounters {
        EngineCounters { model, counted: Mutex::default() }
    }

    /// Counts what its engines did since the last time.
    pub(super) fn add(&self, metrics: &EngineMetrics, counts: EngineCounts, totals: EngineTotals) {
        // Every change is made whole between taking and letting go of the lock.
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        self.add_counts(metrics, counts, &mut counted.counts);
        self.add_totals(metrics, &totals, &counted.totals);
        counted.totals = totals;
    }

    fn add_counts(&self, metrics: &EngineMetrics, now: EngineCounts, counted: &mut EngineCounts) {
        for (phase, now, counted) in [
            ("prefill", now.prefilled, &mut counted.prefilled),
            ("reused", now.reused, &mut counted.reused),
            ("decode", now.decoded, &mut counted.decoded),
        ] {
            metrics.tokens.with_label_values(&[&*self.model, phase]).inc_by(rise(now, counted));
        }
        let preemptions = metrics.preemptions.with_label_values(&[&*self.model]);
        preemptions.inc_by(rise(now.preempted, &mut counted.preempted));
    }

    fn add_totals(&self, metrics: &EngineMetrics, now: &EngineTotals, counted: &EngineTotals) {
        let model = &*self.model;
        let grown = |now: u64, counted: u64| now.saturating_sub(counted);
        for (result, now, counted) in
            [("ok", now.loads, counted.loads), ("failed", now.failed_loads, counted.failed_loads)]
        {
            metrics.loads.with_label_values(&[model, result]).inc_by(grown(now, counted));
        }
        let loading = now.load_time.saturating_sub(counted.load_time).as_secs_f64();
        metrics.load_seconds.with_label_values(&[model]).inc_by(loading);
        for (place, reason) in UnloadReason::ALL.iter().enumerate() {
            let counter = metrics.unloads.with_label_values(&[model, reason.as_str()]);
            counter.inc_by(grown(now.unloads[place], counted.unloads[place]));
        }
        for (place, cause) in FailureCause::ALL.iter().enumerate() {
            let counter = metrics.restarts.with_label_values(&[model, cause.as_str()]);
            counter.inc_by(grown(now.restarts[place], counted.restarts[place]));
        }
    }
}

/// By how much a count has risen, which is counted from now on. While an engine is started again it may seem to fall.
fn rise(now: u64, counted: &mut u64) -> u64 {
    let risen = now.saturating_sub(*counted);
    *counted += risen;
    risen
}
