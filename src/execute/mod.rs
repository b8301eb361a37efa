//! Elastic execution: think to a budget, hand off, solve within a budget of its own.
//!
//! The phase machine decides and counts, and is pure; `run` moves pieces between a backend and the caller.

mod account;
mod answer;
mod heard;
mod leak;
mod meter;
mod phases;
mod quote;
mod run;

pub use heard::{Heard, HeardCall};
pub use meter::Meter;
pub use phases::{Phases, Step, Terms};
pub use run::{Halt, Indexed, Job, Progress, run};
