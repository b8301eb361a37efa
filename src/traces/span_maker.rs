//! `SpanMaker`: makes spans of one trace.

use std::borrow::Cow;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tokio::time::Instant;

use super::live_trace::span_id;
use super::moments::Moments;

/// Ids of spans that are no attempts begin here.
const FIRST: u64 = 1 << 32;

/// Makes spans of one trace.
pub(super) struct SpanMaker<'m> {
    pub(super) moments: &'m Moments,
    scope: InstrumentationScope,
    trace: u128,
    root: u64,
    made: Vec<SpanData>,
}

/// What one span is.
pub(super) struct SpanDraft {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) attributes: Vec<KeyValue>,
    /// What went wrong, in a word.
    pub(super) error: Option<String>,
}

impl SpanDraft {
    pub(super) fn new(name: impl Into<Cow<'static, str>>, from: Instant, to: Instant) -> SpanDraft {
        let to = to.max(from);
        SpanDraft {
            name: name.into(),
            kind: SpanKind::Internal,
            from,
            to,
            attributes: Vec::new(),
            error: None,
        }
    }

    /// The same with an attribute, where it is known.
    pub(super) fn with(mut self, key: &'static str, value: Option<impl Into<Value>>) -> SpanDraft {
        self.attributes.extend(value.map(|value| KeyValue::new(key, value)));
        self
    }

    pub(super) fn of_kind(self, kind: SpanKind) -> SpanDraft {
        SpanDraft { kind, ..self }
    }

    /// The same, which failed for this reason, if any.
    pub(super) fn failed(self, error: Option<String>) -> SpanDraft {
        SpanDraft { error: error.clone(), ..self.with("error.type", error) }
    }
}

impl<'m> SpanMaker<'m> {
    pub(super) fn new(moments: &'m Moments, trace: u128, root: u64) -> SpanMaker<'m> {
        let scope = InstrumentationScope::builder("stint").with_version(env!("CARGO_PKG_VERSION")).build();
        SpanMaker { moments, scope, trace, root, made: Vec::with_capacity(12) }
    }

    /// A span below the request's.
    pub(super) fn child(&mut self, draft: SpanDraft) {
        let root = self.root;
        self.below(root, draft);
    }

    /// A span below another.
    pub(super) fn below(&mut self, parent: u64, draft: SpanDraft) {
        let number = u64::try_from(self.made.len()).unwrap_or(u64::MAX / 2);
        self.with_id(span_id(self.root, FIRST.saturating_add(number)), parent, false, draft);
    }

    /// A span whose id is known.
    pub(super) fn with_id(&mut self, id: u64, parent: u64, is_remote: bool, draft: SpanDraft) {
        let context = SpanContext::new(
            TraceId::from(self.trace),
            SpanId::from(id),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        );
        // The words of an error may quote somebody: its code says enough.
        let status = if draft.error.is_some() { Status::error("") } else { Status::Unset };
        self.made.push(SpanData {
            span_context: context,
            parent_span_id: SpanId::from(parent),
            parent_span_is_remote: is_remote,
            span_kind: draft.kind,
            name: draft.name,
            start_time: self.moments.on_calendar(draft.from),
            end_time: self.moments.on_calendar(draft.to),
            attributes: draft.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        });
    }

    pub(super) fn finish(self) -> Vec<SpanData> {
        self.made
    }
}
