//! The deployments that serve one model. Each *target* is a deployment with one credential.
//!
//! A fleet knows which of its targets may be called now and which is best for a conversation. It gives out permits for
//! them, queues calls that wait for one, and stops calling a target that fails. It never retries by itself: only the
//! gateway's request task knows the money, so the task asks for another [`Permit`].

mod acquire;
mod backlog;
mod behavior;
mod breaker;
mod choice;
#[cfg(test)]
mod crowds;
mod fair_queue;
mod first_tokens;
#[expect(clippy::module_inception, reason = "the fleet itself, beside what it is made of")]
mod fleet;
mod gauges;
mod latency;
mod limit;
mod load;
mod monitor;
mod observed_behavior;
#[cfg(test)]
mod outage_tests;
mod outcomes;
mod peak_served;
mod permit;
mod poll;
mod prompt_cache;
mod queue;
mod recent_waits;
mod retry;
mod settings;
mod target;
mod target_breaker;
mod target_set;
mod trial;
mod waits;
mod window;

pub use backlog::{PlannedCalls, PlannedWork};
pub use breaker::{BreakerSettings, TripCause};
pub use choice::AffinityKey;
pub use fleet::Fleet;
pub use limit::{ConcurrencySettings, OverloadSignal};
pub use load::ReportedLoad;
pub use permit::Permit;
pub use poll::{LoadEndpoint, LoadPoller};
pub use retry::RetrySettings;
pub use settings::Settings;
pub use target::{FlowId, PermitRequest, Target};
pub use target_set::TargetStatus;
