//! `Tracer`: begins traces, and takes those that have ended. `http` holds it.

use std::sync::Arc;

use tokio::sync::mpsc;

use stint_types::metrics::Metrics;
use stint_types::trace::{TraceLink, TraceParent};

use super::live_trace::{EndedTrace, LiveTrace};
use super::moments::Moments;
use super::settings::TraceSampling;

/// Begins traces. Clones share it.
#[derive(Debug, Clone)]
pub struct Tracer(Arc<TracerState>);

#[derive(Debug)]
struct TracerState {
    sampler: TraceSampling,
    propagates: bool,
    sender: mpsc::Sender<EndedTrace>,
    metrics: Arc<Metrics>,
}

impl Tracer {
    pub(super) fn new(
        sampler: TraceSampling,
        propagates: bool,
        sender: mpsc::Sender<EndedTrace>,
        metrics: Arc<Metrics>,
    ) -> Tracer {
        Tracer(Arc::new(TracerState { sampler, propagates, sender, metrics }))
    }

    /// Begins the trace of a request that came with these headers, if any.
    pub fn begin(&self, parent: Option<&str>, state: Option<&str>) -> LiveTrace {
        let parent = parent.and_then(TraceParent::parse);
        let trace = parent.map_or_else(random_trace, |parent| parent.trace);
        let is_sampled = match parent {
            Some(parent) if self.0.sampler.follows_caller => parent.is_sampled,
            _ => is_within(trace, self.0.sampler.ratio),
        };
        let root = random_span();
        let state = state.filter(|_| parent.is_some());
        let link = Arc::new(TraceLink::new(trace, root, is_sampled, state));
        let moments = is_sampled.then(Moments::begin);
        LiveTrace::new(self.clone(), link, (root, parent.map(|parent| parent.span)), moments)
    }

    /// Whether upstreams are told the trace.
    pub(super) fn propagates(&self) -> bool {
        self.0.propagates
    }

    /// Takes a trace that has ended, where there is room.
    pub(super) fn send(&self, ended: EndedTrace) {
        if self.0.sender.try_send(ended).is_err() {
            self.0.metrics.traces.total.with_label_values(&["dropped"]).inc();
        }
    }
}

/// Whether a trace is among a share of all, by the number that every server sees in it alike.
fn is_within(trace: u128, ratio: f64) -> bool {
    // So many bits are a whole number in a float.
    let drawn = u32::try_from(trace & u128::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(drawn) < ratio * (f64::from(u32::MAX) + 1.0)
}

fn random_trace() -> u128 {
    (u128::from(random_span()) << 64) | u128::from(random_span())
}

/// A number that is not zero.
fn random_span() -> u64 {
    getrandom::u64().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_traces_is_recorded() {
        let within = |ratio| {
            (0..1000_u64).filter(move |n| {
                let drawn = u128::from(stint_types::units::mix64(*n + 1));
                is_within(drawn, ratio)
            })
        };
        assert_eq!(within(0.0).count(), 0);
        assert_eq!(within(1.0).count(), 1000);
        let half = within(0.5).count();
        assert!((450..550).contains(&half), "{half}");
    }
}
