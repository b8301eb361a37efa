//! Traces of requests, for an OpenTelemetry collector, by the conventions for generative models.
//!
//! A request's [`LiveTrace`] notes moments while it runs, and nothing else. When the request has ended it goes through a bounded
//! queue to a task of its own, which makes the spans and sends them in batches. So an answer never waits for a collector: where
//! that does not keep up, traces are dropped and counted. No prompt, answer or key is in any of them.

mod collector;
mod exporter;
mod live_trace;
mod moments;
mod root_span;
mod settings;
mod span_maker;
mod spans;
mod tracer;

pub use collector::CollectorError;
pub use exporter::open;
pub use live_trace::{LiveTrace, RootDetails};
pub use settings::{Protocol, Settings, TraceSampling};
pub use tracer::Tracer;
