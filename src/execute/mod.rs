//! Elastic execution: think to a budget, hand off, solve within a budget of its own.
//!
//! The phase machine decides and counts, and is pure; `run` moves pieces between a backend and the caller. `vote` decides
//! about several answers to one choice, and is pure too; `verify` asks an operator's own check of them.

mod account;
mod answer;
mod brake;
mod cover;
mod further;
mod heard;
mod leak;
mod logprobs;
mod meter;
mod passing;
mod phases;
mod quote;
mod run;
mod sampled;
mod sampling;
mod taking;
pub mod verify;
pub mod vote;

pub use cover::Cover;
pub use further::{Need, Wish, Wishes, wishes};
pub use heard::{Heard, HeardCall};
pub use meter::Meter;
pub use passing::Passing;
pub use phases::{Phases, Step, Terms};
pub use run::{Halt, Indexed, Job, Progress, run};
pub use sampled::{Ended, Sample, Sampled, text};
pub use sampling::{Panel, samples, whole};
