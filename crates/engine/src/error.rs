//! What can go wrong, in the engine's own words.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use stint_gguf::GgufError;

/// Why the engine could not start, or had to end a generation.
#[derive(Debug, Clone, Error)]
pub enum EngineError {
    /// The file is not a model that the engine can read.
    #[error(transparent)]
    File(#[from] std::sync::Arc<GgufError>),
    /// The file is fine, the model in it is not supported.
    #[error("this model cannot be run: {0}")]
    Model(String),
    /// The settings ask for what the device cannot give.
    #[error("{0}")]
    Settings(String),
    /// There is no device at all.
    #[error("no GPU driver found: install mesa-vulkan-drivers (software) or the driver of your GPU")]
    NoDevice,
    /// There are devices, but none that the settings allow.
    #[error("no usable GPU among {found}: {remedy}")]
    NoUsableDevice {
        /// The devices that were found.
        found: String,
        /// What to change.
        remedy: String,
    },
    /// The model is too large for a software driver.
    #[error(
        "its weights are {} MB, and on the software driver {device} a model of more than {} MB takes minutes for an answer: set \
         `allow_cpu = true` in [engine] if that is meant, or serve the file by a llama.cpp server (`kind = \"llamacpp\"`)",
        .weights / 1_000_000, .weights_max / 1_000_000
    )]
    TooLargeForSoftware {
        /// The driver.
        device: String,
        /// Bytes of the weights.
        weights: u64,
        /// The most that is taken without a word on it.
        weights_max: u64,
    },
    /// The model does not fit the device's memory.
    #[error(
        "it takes {} MB of weights, {} to compute in and {} for a cache of {tokens} tokens, and there are {} MB of the GPU's memory{}: \
         choose a smaller model or format, lower `context`, `sequences` or `prefill_chunk` in [engine], or set `memory_max` to what \
         models may take, which is nine tenths of the adapter's where nothing is said",
        .weights / 1_000_000, .working / 1_000_000, .cache / 1_000_000, .memory / 1_000_000, BesideOthers(*.taken)
    )]
    TooLargeForDevice {
        /// Bytes of the weights.
        weights: u64,
        /// Bytes that steps compute in.
        working: u64,
        /// Bytes of the smallest cache that will do.
        cache: u64,
        /// Tokens in that cache.
        tokens: u64,
        /// Bytes that there are.
        memory: u64,
        /// Bytes that models have which stay loaded.
        taken: u64,
    },
    /// The device could not be opened.
    #[error("cannot open the GPU {name}: {reason}")]
    Open {
        /// The device.
        name: String,
        /// The driver's message.
        reason: String,
    },
    /// The device has not enough memory.
    #[error("the GPU is out of memory: lower `kv_tokens` or choose a smaller model")]
    OutOfMemory,
    /// The device went away.
    #[error("the GPU was lost: {0}")]
    Lost(String),
    /// A step took longer than any should.
    #[error("the engine made no progress for {} s, the most that a step may take (`step_timeout`)", .0.as_secs())]
    Stalled(Duration),
    /// The driver took too long to start an engine.
    #[error("the engine was not started within {} s", .0.as_secs())]
    StartTimeout(Duration),
    /// The worker's thread panicked; a mistake in the engine.
    #[error("the engine's thread panicked: {0}")]
    Panicked(String),
    /// The device that the engine ran on is not the one that is there now.
    #[error("the GPU {expected} is not there, only {found}: it is tried again")]
    OtherDevice {
        /// Where the engine ran.
        expected: String,
        /// What was found in its place.
        found: String,
    },
    /// Threads that hang hold too much of the device.
    #[error("{0} threads of the engine hang and keep their memory: restart the process")]
    TooManyHang(usize),
    /// The driver refused a command; a mistake in the engine or the driver.
    #[error("the GPU refused a command: {0}")]
    Refused(String),
    /// The kernel's budget state and the specification differ; a mistake in the engine or the driver.
    #[error("the sampler strayed from its budget, so the generation was ended")]
    SamplerMismatch,
    /// What the model computes is not a number: a damaged file, or one whose numbers outgrow the cache's format.
    #[error(
        "what the model computes is not a number (NaN): its file is damaged, so download or export it again; if the file is whole, \
         set `kv_format = \"f32\"` in [engine]"
    )]
    NotANumber,
    /// What says which tokens an answer may have could not.
    #[error("the answer could not be held to its form: {0}")]
    Constraint(#[from] super::constraint::ConstraintError),
    /// The worker's thread could not be started.
    #[error("cannot start the engine's thread: {0}")]
    Thread(String),
    /// The engine was stopped.
    #[error("the engine was stopped")]
    Stopped,
}

/// What stays loaded beside a model that does not fit.
struct BesideOthers(u64);

impl fmt::Display for BesideOthers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            taken => {
                write!(
                    f,
                    " beside {} MB of models that stay loaded (`keep_alive` lets one go)",
                    taken / 1_000_000
                )
            }
        }
    }
}

impl From<GgufError> for EngineError {
    fn from(error: GgufError) -> Self {
        Self::File(std::sync::Arc::new(error))
    }
}

/// Why a job was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JobRejection {
    /// The queue is full.
    #[error("the engine's queue is full: try again shortly")]
    Busy,
    /// Prompt and budgets together do not fit the context.
    #[error("the job needs {needed} tokens of context, the engine has {context}")]
    TooLong {
        /// Prompt, thought, hand-off and solution.
        needed: u64,
        /// What there is.
        context: u32,
    },
    /// The job asks for something that no engine can do.
    #[error("the job cannot be run: {0}")]
    Invalid(&'static str),
    /// The engine was stopped, or its device failed.
    #[error("the engine has stopped")]
    Stopped,
    /// The engine failed, and is started again.
    #[error("the engine failed and is started again: try again shortly")]
    Restarting,
}
