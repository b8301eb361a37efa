//! `LiveTrace`: the trace of one request while it runs. The request log holds it and passes on what it observes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::gateway::RequestStage;
use stint_sessions::history::RequestRecord;
use stint_types::trace::TraceLink;
use stint_types::units::mix64;

use super::moments::Moments;
use super::tracer::Tracer;

/// The trace of a request. One that is not recorded only passes its trace on to upstreams.
#[derive(Debug)]
pub struct LiveTrace {
    tracer: Tracer,
    link: Arc<TraceLink>,
    /// The request's own span, and its caller's.
    spans: (u64, Option<u64>),
    moments: Option<Mutex<Moments>>,
}

/// What is known of a request at its end.
#[derive(Debug, Default)]
pub struct RootDetails {
    /// Its method.
    pub method: String,
    /// The endpoint, as the route table has it.
    pub endpoint: &'static str,
    /// Its id.
    pub id: Option<String>,
    /// Whose key it carried.
    pub account: Option<String>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// The code of the error that it was answered with.
    pub code: Option<String>,
    /// How it ended, as the log says it.
    pub outcome: &'static str,
}

/// A trace of which spans are made.
#[derive(Debug)]
pub(super) struct EndedTrace {
    pub(super) trace: u128,
    pub(super) root: u64,
    pub(super) parent: Option<u64>,
    pub(super) moments: Moments,
    pub(super) ended: Instant,
    pub(super) details: RootDetails,
}

impl LiveTrace {
    pub(super) fn new(
        tracer: Tracer,
        link: Arc<TraceLink>,
        spans: (u64, Option<u64>),
        moments: Option<Moments>,
    ) -> LiveTrace {
        LiveTrace { tracer, link, spans, moments: moments.map(Mutex::new) }
    }

    /// What upstreams are told of it, where they are.
    pub fn link(&self) -> Option<Arc<TraceLink>> {
        self.tracer.propagates().then(|| self.link.clone())
    }

    /// A call goes to a target.
    pub fn dispatched(&self, model: &Arc<str>, target: &Arc<str>) {
        let Some(mut moments) = self.moments() else { return };
        let number = u64::try_from(moments.attempts.len()).unwrap_or(u64::MAX);
        let span = span_id(self.spans.0, number);
        moments.dispatch(span, model, target);
        drop(moments);
        self.link.enter(span);
    }

    /// A stage is over.
    pub fn reached(&self, stage: &RequestStage<'_>) {
        if let Some(mut moments) = self.moments() {
            moments.reach(stage);
        }
    }

    /// It is settled.
    pub fn settled(&self, record: &Arc<RequestRecord>) {
        if let Some(mut moments) = self.moments() {
            moments.record = Some(record.clone());
        }
    }

    /// Nothing more can happen to it.
    pub fn end(self, details: impl FnOnce() -> RootDetails) {
        let LiveTrace { tracer, link, spans: (root, parent), moments } = self;
        let Some(moments) = moments else { return };
        let moments = moments.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (trace, ended) = (link.trace(), Instant::now());
        tracer.send(EndedTrace { trace, root, parent, moments, ended, details: details() });
    }

    fn moments(&self) -> Option<MutexGuard<'_, Moments>> {
        // Every change is whole.
        Some(self.moments.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The id of a span below another.
pub(super) fn span_id(root: u64, number: u64) -> u64 {
    mix64(root.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))).max(1)
}
