//! The handle to a running engine: jobs in, a stream of tokens out.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use stint_gguf::Gguf;

use super::block_pool::{BlockPool, CacheScope};
use super::constraint::AnswerConstraint;
use super::engine_plan::EnginePlan;
use super::error::{EngineError, JobRejection};
use super::forward::EngineModel;
use super::gpu::{DeviceInfo, Gpu};
use super::kv_format::KvFormat;
use super::messages::{AcceptedJob, EngineCounts, GenerationEvent, JobPriority, WorkerMessage, WorkerStatus};
use super::ops::{BLOCK, EOS_MAX, HAND_OFF_MAX, SamplingParams};
use super::penalties::{BIASES_MAX, TokenPenalties};
use super::phases::{PhaseBudgets, PhaseMachine};
use super::step_limit::plausible_step;
use super::step_pace::StepPace;
use super::token_logprobs::TOP_MAX;
use super::token_stream::TokenStream;
use super::warm_up::warm_up;
use super::worker::EngineWorker;
use super::worker_thread::WorkerThread;

/// The settings of an engine, fixed at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Part of the name of the device to use; without it, the best one.
    pub adapter: Option<String>,
    /// Sequences that run at once.
    pub sequences: u32,
    /// Tokens of one sequence, prompt included, where less than the model's own limit is wanted.
    pub context: Option<u32>,
    /// Tokens that the cache holds, all sequences together. A job takes room as it needs it.
    /// When there is none left, the one that began last stops and is computed anew later.
    pub kv_tokens: u32,
    /// What the cache keeps keys and values as.
    pub kv_format: KvFormat,
    /// Whether beginnings of texts that are in the cache are used again.
    pub prefix_reuse: bool,
    /// The most prompt tokens that run in one step, beside one token of every sequence past its prompt. Fewer run where others
    /// would wait too long. 512 on a GPU and 128 on a software driver without it.
    pub prefill_chunk: Option<u32>,
    /// Jobs that may wait beside those that run.
    pub queue: usize,
    /// Whether a software driver will do.
    pub allow_cpu: bool,
    /// The most bytes of weights that a software driver is to run; any number without it.
    pub cpu_weights_max: Option<u64>,
    /// The most bytes of the device's memory that models may take together; nine tenths of what the device has, as far as its
    /// driver tells, without it. Where less is left for the cache than `kv_tokens`, it holds fewer.
    pub memory_max: Option<u64>,
    /// Bytes of that memory that other models have and keep.
    pub memory_taken: u64,
    /// The most that one step may take; a worker that is longer at one hangs. What is plausible for the model and the device
    /// without it.
    pub step_timeout: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            adapter: None,
            sequences: 8,
            context: None,
            kv_tokens: 8192,
            kv_format: KvFormat::default(),
            prefix_reuse: true,
            prefill_chunk: None,
            queue: 64,
            allow_cpu: false,
            cpu_weights_max: None,
            memory_max: None,
            memory_taken: 0,
            step_timeout: None,
        }
    }
}

/// One generation to run.
#[derive(Debug, Clone)]
pub struct GenerationJob {
    /// The tokens to continue; at least one.
    pub prompt: Vec<u32>,
    /// How to draw.
    pub sampling: SamplingParams,
    /// What makes single tokens less likely, or more.
    pub penalties: TokenPenalties,
    /// How many tokens each phase may have.
    pub phases: PhaseBudgets,
    /// The tokens that end the text.
    pub eos: Vec<u32>,
    /// What the answer may be; any text without it.
    pub constraint: Option<AnswerConstraint>,
    /// How many of the likeliest tokens are told of beside each token of the answer, where it is to be told how likely that was.
    pub logprobs: Option<u32>,
    /// Whose texts it may share the cache with.
    pub scope: CacheScope,
    /// When its turn is, where jobs wait.
    pub priority: JobPriority,
}

/// How busy an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLoad {
    /// Sequences that run.
    pub running: usize,
    /// Jobs that wait.
    pub waiting: usize,
    /// Sequences that run at once.
    pub slots: usize,
    /// Blocks of the cache that nobody holds.
    pub blocks_free: usize,
    /// Blocks of the cache.
    pub blocks_total: usize,
    /// What it did since the start.
    pub counts: EngineCounts,
}

/// A running engine. Cheap to clone; when the last handle is gone the thread ends its work and exits.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    messages: SyncSender<WorkerMessage>,
    shared: Arc<WorkerStatus>,
    device: DeviceInfo,
    context: u32,
    vocab: u32,
    blocks: u32,
    slots: usize,
    single_step: Duration,
    accepted_max: usize,
    weight_bytes: u64,
    memory: u64,
    step_max: Duration,
    thread: Mutex<Option<WorkerThread>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("device", &self.0.device.name).field("load", &self.load()).finish()
    }
}

impl Engine {
    /// Opens the device, uploads the model and starts the thread. Blocks until that is done; the file is not
    /// needed afterwards.
    pub fn start(gguf: &Gguf, settings: &Settings) -> Result<Self, EngineError> {
        let gpu = Gpu::open(settings.adapter.as_deref(), settings.allow_cpu)?;
        Self::start_on(Arc::new(gpu), gguf, settings)
    }

    pub(crate) fn start_on(gpu: Arc<Gpu>, gguf: &Gguf, settings: &Settings) -> Result<Self, EngineError> {
        let EnginePlan { shape, capacity: extent, memory, .. } = EnginePlan::new(&gpu, gguf, settings)?;
        let device = gpu.info.clone();
        let mut model = EngineModel::load(gpu, gguf, &shape, extent)?;
        gguf.check_unchanged()?;
        let held_max = settings.queue.saturating_add(extent.slots as usize);
        // One more, for the message that only wakes.
        let (orders, inbox) = sync_channel(held_max.saturating_add(1));
        let shared = Arc::new(WorkerStatus::default());
        shared.blocks_free.store(extent.blocks as usize, Ordering::Relaxed);
        let weight_bytes = model.weight_bytes();
        let single = warm_up(&model, extent)?;
        let step_max = settings.step_timeout.unwrap_or_else(|| plausible_step(single, extent.rows));
        model.limit_steps(step_max);
        let blocks = BlockPool::new(extent.blocks, settings.prefix_reuse);
        let pace = StepPace::new(single, extent.rows - extent.slots);
        let worker = EngineWorker::new(model, blocks, pace, inbox, Arc::clone(&shared));
        let thread = WorkerThread::start("engine", move || worker.run())?;
        let (context, vocab, blocks) = (extent.context, shape.vocab, extent.blocks);
        let thread = Mutex::new(Some(thread));
        let inner = EngineInner {
            messages: orders,
            shared,
            device,
            context,
            vocab,
            blocks,
            slots: extent.slots as usize,
            single_step: single,
            accepted_max: held_max,
            weight_bytes,
            memory,
            step_max,
            thread,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Takes a job, or says at once why not. Never blocks.
    pub fn generate(&self, job: GenerationJob) -> Result<TokenStream, JobRejection> {
        self.check(&job)?;
        let needed = job.prompt.len() as u64 + job.phases.tokens_max();
        if needed > u64::from(self.0.context) {
            return Err(JobRejection::TooLong { needed, context: self.0.context });
        }
        // Room for every token there can be and the last word: the engine's thread never waits for a reader.
        let tokens = usize::try_from(job.phases.tokens_max()).unwrap_or(usize::MAX);
        let events = if job.logprobs.is_some() { tokens.saturating_mul(2) } else { tokens };
        let room = events.saturating_add(4);
        let (out, events) = mpsc::channel(room);
        let machine = PhaseMachine::new(job.phases, job.eos);
        let tokens = TokenStream::new(events, self.0.shared.ended.subscribe());
        if let Some(done) = machine.done() {
            let _ = out.try_send(GenerationEvent::Done(done));
            return Ok(tokens);
        }
        let shared = &self.0.shared;
        let one_more = |held| (held < self.0.accepted_max).then_some(held + 1);
        if shared.accepted.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_err() {
            return Err(JobRejection::Busy);
        }
        let GenerationJob { prompt, sampling, penalties, constraint, logprobs, scope, priority, .. } = job;
        let order =
            AcceptedJob { prompt, sampling, penalties, machine, constraint, logprobs, scope, priority, out };
        self.0.messages.try_send(WorkerMessage::Job(Box::new(order))).map_err(|error| {
            shared.accepted.fetch_sub(1, Ordering::AcqRel);
            match error {
                TrySendError::Full(_) => JobRejection::Busy,
                TrySendError::Disconnected(_) => JobRejection::Stopped,
            }
        })?;
        Ok(tokens)
    }

    fn check(&self, job: &GenerationJob) -> Result<(), JobRejection> {
        let thinking = job.phases.thinking.as_ref();
        let hand_off = thinking.map_or(&[][..], |thinking| &thinking.hand_off);
        let known = |ids: &[u32]| ids.iter().all(|id| *id < self.0.vocab);
        let problem = if !self.is_alive() {
            return Err(JobRejection::Stopped);
        } else if job.prompt.is_empty() {
            "its prompt is empty"
        } else if !known(&job.prompt) || !known(hand_off) {
            "it has a token that the model does not know"
        } else if hand_off.len() > HAND_OFF_MAX {
            "its hand-off is longer than 256 tokens"
        } else if job.phases.solution == 0 && thinking.is_some_and(|thinking| !thinking.open) {
            "it has no tokens for a solution, which may come at once where the thought is not open"
        } else if job.eos.len() > EOS_MAX {
            "it has more than 8 end-of-text tokens"
        } else if !job.sampling.temperature.is_finite() || job.sampling.temperature < 0.0 {
            "its temperature is negative or not a number"
        } else if !(0.0..=1.0).contains(&job.sampling.top_p) {
            "its top_p is not between 0 and 1"
        } else if !(0.0..=1.0).contains(&job.sampling.min_p) {
            "its min_p is not between 0 and 1"
        } else if !job.penalties.is_valid() {
            "a penalty or a bias of it is not a number, or its repetition penalty is not above 0"
        } else if job.penalties.biases.len() > BIASES_MAX {
            "it has more than 1024 biases"
        } else if !job.penalties.biases.iter().all(|(id, _)| *id < self.0.vocab) {
            "it has a bias for a token that the model does not know"
        } else if job.constraint.is_some() && job.eos.is_empty() {
            "its answer has a form, and no token could end it"
        } else if job.logprobs.is_some_and(|top| top > TOP_MAX) {
            "it is to be told of more than 20 tokens beside each"
        } else {
            return Ok(());
        };
        Err(JobRejection::Invalid(problem))
    }

    /// How busy it is now.
    #[must_use]
    pub fn load(&self) -> EngineLoad {
        let shared = &self.0.shared;
        let running = shared.running.load(Ordering::Acquire);
        EngineLoad {
            running,
            waiting: shared.accepted.load(Ordering::Acquire).saturating_sub(running),
            slots: self.0.slots,
            blocks_free: shared.blocks_free.load(Ordering::Acquire),
            blocks_total: self.0.blocks as usize,
            counts: shared.counts(),
        }
    }

    /// Whether it still takes jobs: false once it was stopped or its device failed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.0.shared.stopping.load(Ordering::Acquire)
    }

    /// How long a step of one sequence took at the start, with nothing beside it.
    #[must_use]
    pub fn single_step(&self) -> Duration {
        self.0.single_step
    }

    /// The device it runs on.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.0.device
    }

    /// The most tokens that prompt and budgets of one job may have together.
    #[must_use]
    pub fn context(&self) -> u32 {
        self.0.context
    }

    /// The size of the vocabulary.
    #[must_use]
    pub fn vocab(&self) -> u32 {
        self.0.vocab
    }

    /// Bytes of weights that one token reads: against the device's bandwidth, the limit of decoding.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes
    }

    /// Bytes of the device's memory that it takes: weights, cache, and what steps compute in.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory
    }

    /// Tokens that its cache holds.
    #[must_use]
    pub fn kv_tokens(&self) -> u32 {
        self.0.blocks * BLOCK
    }

    /// The most that one step may take.
    #[must_use]
    pub fn step_max(&self) -> Duration {
        self.0.step_max
    }

    /// Why it takes no more jobs, once it was stopped or has failed.
    pub(crate) fn failure(&self) -> Option<EngineError> {
        self.0.shared.ended.borrow().clone()
    }

    /// How many turns its worker has made.
    pub(crate) fn turns(&self) -> u64 {
        self.0.shared.turns.load(Ordering::Relaxed)
    }

    /// Gives it up: every stream ends with the reason at once, whatever the worker does. Its thread, if it hangs, ends when it
    /// comes back.
    pub(crate) fn give_up(&self, reason: &EngineError) -> Option<WorkerThread> {
        self.0.shared.end(reason);
        self.take_thread()
    }

    fn take_thread(&self) -> Option<WorkerThread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets a fault happen before the next step.
    #[cfg(any(test, feature = "faults"))]
    pub(crate) fn inject(&self, fault: super::faults::InjectedFault) {
        let _ = self.0.messages.try_send(WorkerMessage::Fault(fault));
    }

    /// Ends everything that runs or waits, and the thread. Blocks for one step at most, as long as a step may be.
    pub fn stop(&self) {
        self.0.shared.stopping.store(true, Ordering::Release);
        let _ = self.0.messages.try_send(WorkerMessage::Wake);
        if let Some(thread) = self.take_thread() {
            let has_left = thread.wait(self.0.step_max);
            if !has_left {
                // Nobody waits for it any more.
                self.0.shared.end(&EngineError::Stalled(self.0.step_max));
            }
        }
    }
}
