//! What goes between the engine's handles and its thread: jobs in, events out, and a status that both read.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{mpsc, watch};

use super::block_pool::CacheScope;
use super::constraint::AnswerConstraint;
use super::error::EngineError;
use super::ops::SamplingParams;
use super::penalties::TokenPenalties;
use super::phases::{GeneratedToken, GenerationSummary, PhaseMachine};
use super::token_logprobs::TokenLogprobs;

/// What reaches the thread.
pub(crate) enum WorkerMessage {
    Job(Box<AcceptedJob>),
    /// Nothing new: the thread looks whether a reader left.
    Wake,
    /// A fault that a test wants.
    #[cfg(any(test, feature = "faults"))]
    Fault(super::faults::InjectedFault),
}

/// Who goes first where jobs wait for a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobPriority {
    /// It goes on with a job that was given up: it has waited before.
    Resumes,
    /// Somebody waits for it.
    #[default]
    Interactive,
    /// Nobody does: it goes when no other waits.
    Batch,
}

/// A job that was accepted.
pub(crate) struct AcceptedJob {
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampling: SamplingParams,
    pub(crate) penalties: TokenPenalties,
    pub(crate) machine: PhaseMachine,
    pub(crate) constraint: Option<AnswerConstraint>,
    pub(crate) logprobs: Option<u32>,
    /// Whose texts it may share the cache with.
    pub(crate) scope: CacheScope,
    pub(crate) priority: JobPriority,
    pub(crate) out: mpsc::Sender<GenerationEvent>,
}

/// What a generation sends.
#[derive(Debug, Clone)]
pub enum GenerationEvent {
    /// The prompt was read; comes before the first token.
    PromptRead {
        /// How many of its tokens were in the cache already.
        reused: u32,
        /// Whether it never waited, and hardly anything of other prompts was read meanwhile: only then the time that it took is that
        /// of its length.
        alone: bool,
    },
    /// How likely the answer's next token was, where that was asked for; comes before it.
    Logprobs(TokenLogprobs),
    /// One more token.
    Token(GeneratedToken),
    /// It ended as it should. Nothing follows.
    Done(GenerationSummary),
    /// It had to be ended. Nothing follows.
    Failed(EngineError),
}

/// What an engine did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Prompt tokens processed, those of sequences that had to be computed anew among them.
    pub prefilled: u64,
    /// Prompt tokens that were in the cache already.
    pub reused: u64,
    /// Tokens generated.
    pub decoded: u64,
    /// How often a sequence had to stop for want of room in the cache, to be computed anew.
    pub preempted: u64,
}

impl std::ops::AddAssign for EngineCounts {
    fn add_assign(&mut self, more: Self) {
        self.prefilled += more.prefilled;
        self.reused += more.reused;
        self.decoded += more.decoded;
        self.preempted += more.preempted;
    }
}

/// What the worker reports to its handles.
#[derive(Debug, Default)]
pub(crate) struct WorkerStatus {
    pub(crate) running: AtomicUsize,
    /// Jobs accepted and not yet ended.
    pub(crate) accepted: AtomicUsize,
    pub(crate) blocks_free: AtomicUsize,
    pub(crate) prefilled: AtomicU64,
    pub(crate) reused: AtomicU64,
    pub(crate) preempted: AtomicU64,
    pub(crate) decoded: AtomicU64,
    pub(crate) stopping: AtomicBool,
    /// Rises with every turn of the worker, also while it has nothing to do. A worker whose number stays is stuck.
    pub(crate) turns: AtomicU64,
    /// Why the worker ended, or was given up. Every stream of tokens reads it.
    pub(crate) ended: watch::Sender<Option<EngineError>>,
}

impl WorkerStatus {
    /// What the worker did so far.
    pub(crate) fn counts(&self) -> EngineCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        EngineCounts {
            prefilled: read(&self.prefilled),
            reused: read(&self.reused),
            decoded: read(&self.decoded),
            preempted: read(&self.preempted),
        }
    }

    /// It takes no more jobs, and every stream that waits hears why. The first reason stays.
    pub(crate) fn end(&self, reason: &EngineError) {
        self.stopping.store(true, Ordering::Release);
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert_with(|| reason.clone());
            is_first
        });
    }
}
