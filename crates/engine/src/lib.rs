//! A local language model on the GPU: token ids in, token ids out, budgets kept to the token.
//!
//! The engine knows model files and token ids. It knows nothing of chats, text, money or HTTP, but for tags of thinking that
//! are no tokens. Its callers turn text into ids and back. One thread owns the device ([`Engine`] is the handle to it) and
//! repeats schedule → forward → sample over a batch that changes with every step.
//!
//! ```text
//! let engine = Engine::start(&Gguf::open(path)?, &Settings { allow_cpu: true, ..Settings::default() })?;
//! let mut tokens = engine.generate(job)?;          // refused at once when it cannot run
//! while let Some(event) = tokens.next().await {    // dropping `tokens` ends the generation
//!     match event {
//!         GenerationEvent::Token(GeneratedToken { id, role }) => …,
//!         GenerationEvent::Done(summary) => …,     // the last event, or
//!         GenerationEvent::Failed(error) => …,
//!     }
//! }
//! ```
//!
//! A [`SupervisedEngine`] is watched by a thread of its own. When its device is lost, its thread panics or a step hangs, all
//! that runs on it ends at once, and after a wait that grows another engine is started on the same weights.
//!
//! Several models share a device in an [`EnginePool`]. Each is loaded at the start or when it is first needed, and let go when it is
//! idle; what they take is counted before.
//!
//! Weights keep the bits that they are stored with and are unpacked in the kernels. Activations are f32; on GPUs they
//! meet weights of blocks in bytes. The cache is f16 unless the settings say f32. A result does not depend on what else runs: every kernel
//! reduces in an order that depends on its own row alone.

mod block_pool;
mod constraint;
mod engine_plan;
mod error;
mod expert_shape;
mod expert_weights;
mod facts;
mod failure_cause;
mod family;
#[cfg(any(test, feature = "faults"))]
mod faults;
mod forward;
mod generation;
mod gpu;
mod kv_format;
mod memory_needs;
mod ops;
mod penalties;
mod phases;
mod prefill_share;
#[doc(hidden)]
pub mod probe;
mod repack;
mod rope_scaling;
mod scheduler;
mod sequence;
mod shape;
mod step_limit;
mod step_pace;
mod token_logprobs;
mod warm_up;
mod weights;
mod worker;
mod worker_thread;

mod handle;
mod messages;
mod pool;
mod restart;
mod restart_policy;
mod supervised;
mod supervisor;
mod token_stream;

pub use block_pool::CacheScope;
pub use constraint::{AnswerConstraint, ConstraintError, TokenConstraint, TokenSet};
pub use engine_plan::EngineSize;
pub use error::{EngineError, JobRejection};
pub use facts::{ModelFacts, describe};
pub use failure_cause::{EngineEvent, EngineOutage, FailureCause, UnloadReason};
#[cfg(any(test, feature = "faults"))]
pub use faults::InjectedFault;
pub use gpu::{DeviceInfo, DeviceKind};
pub use handle::{Engine, EngineLoad, GenerationJob, Settings};
pub use kv_format::KvFormat;
pub use messages::{EngineCounts, GenerationEvent, JobPriority};
pub use ops::{HAND_OFF_MAX, SamplingParams};
pub use penalties::{BIASES_MAX, TokenPenalties};
pub use phases::{
    GeneratedToken, GenerationSummary, PhaseBudgets, SolutionEnd, SpelledTags, ThinkingEnd, ThinkingPhase,
    TokenRole,
};
pub use pool::{
    EngineLease, EnginePool, EngineSpec, EngineTotals, LeaseRefusal, PooledEngine, PooledOutage,
    RemovalListener, Residency,
};
pub use restart::WeightsOpener;
pub use supervised::{EngineListener, SupervisedEngine, WeakSupervisedEngine};
pub use token_logprobs::TokenLogprobs;
pub use token_stream::TokenStream;

/// Whether the engine could run a file's model, as far as the file tells.
///
/// # Errors
/// Why it could not.
pub fn examine(gguf: &stint_gguf::Gguf) -> Result<(), EngineError> {
    describe(gguf).map(drop)
}

#[cfg(test)]
mod tests;
