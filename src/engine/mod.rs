//! A local language model on the GPU: token ids in, token ids out, budgets kept to the token.
//!
//! The engine knows model files and token ids. It knows nothing of chats, text, money or HTTP; what is
//! above it turns text into ids and back. One thread owns the device ([`Engine`] is the handle to it) and
//! repeats schedule → forward → sample over a batch that changes with every step.

mod blocks;
mod error;
mod forward;
pub mod gguf;
mod gpu;
mod ops;
mod phases;
#[doc(hidden)]
pub mod probe;
mod schedule;
mod shape;
mod weights;
mod worker;

mod handle;

pub use error::{EngineError, Refused};
pub use gguf::{Gguf, GgufError};
pub use gpu::{DeviceInfo, DeviceKind};
pub use handle::{Engine, Event, Job, Load, Settings, Tokens};
pub use ops::Sampling;
pub use phases::{Done, Phases, Role, SolutionEnd, Step, Thinking, ThinkingEnd};

#[cfg(test)]
mod tests;
