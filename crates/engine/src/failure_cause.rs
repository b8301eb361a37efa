//! Why an engine failed, and what is told of that.

use std::time::Duration;

use super::error::EngineError;
use super::gpu::DeviceInfo;

/// Why an engine failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// Its device went away.
    Lost,
    /// A step took longer than any should.
    Hung,
    /// Its thread panicked.
    Panicked,
    /// The device refused a command, or had no memory for it.
    Refused,
}

impl FailureCause {
    /// Every cause.
    pub const ALL: [FailureCause; 4] =
        [FailureCause::Lost, FailureCause::Hung, FailureCause::Panicked, FailureCause::Refused];

    /// The word in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCause::Lost => "lost",
            FailureCause::Hung => "hung",
            FailureCause::Panicked => "panicked",
            FailureCause::Refused => "refused",
        }
    }

    /// What happened, for callers: without the driver's message.
    #[must_use]
    pub fn for_caller(self) -> &'static str {
        match self {
            FailureCause::Lost => "the GPU was lost; the engine is started again",
            FailureCause::Hung => "the engine hung; it is started again",
            FailureCause::Panicked => "the engine failed; it is started again",
            FailureCause::Refused => "the GPU refused to go on; the engine is started again",
        }
    }

    pub(crate) fn of(error: &EngineError) -> Self {
        match error {
            EngineError::Lost(_) => FailureCause::Lost,
            EngineError::Stalled(_) | EngineError::StartTimeout(_) => FailureCause::Hung,
            EngineError::Panicked(_) | EngineError::Stopped | EngineError::Thread(_) => {
                FailureCause::Panicked
            }
            EngineError::OutOfMemory
            | EngineError::Refused(_)
            | EngineError::SamplerMismatch
            | EngineError::NotANumber
            | EngineError::Constraint(_)
            | EngineError::File(_)
            | EngineError::Model(_)
            | EngineError::Settings(_)
            | EngineError::NoDevice
            | EngineError::NoUsableDevice { .. }
            | EngineError::TooLargeForSoftware { .. }
            | EngineError::OtherDevice { .. }
            | EngineError::TooManyHang(_)
            | EngineError::TooLargeForDevice { .. }
            | EngineError::Open { .. } => FailureCause::Refused,
        }
    }
}

/// Why there is no engine now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOutage {
    /// Why the last one failed. Nothing if it was stopped.
    pub cause: Option<FailureCause>,
    /// When there may be one again, as far as that can be told.
    pub retry_in: Option<Duration>,
}

/// Why a model was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnloadReason {
    /// Nobody used it for long.
    Idle,
    /// Another needed its room.
    Room,
}

impl UnloadReason {
    /// Every reason.
    pub const ALL: [UnloadReason; 2] = [UnloadReason::Idle, UnloadReason::Room];

    /// The word in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            UnloadReason::Idle => "idle",
            UnloadReason::Room => "room",
        }
    }
}

/// What happens to an engine, and to its model.
#[derive(Debug, Clone)]
pub enum EngineEvent {
    /// It failed. All that ran on it has ended.
    Failed {
        /// Why, in one word.
        cause: FailureCause,
        /// Why.
        error: EngineError,
        /// The wait before the next start.
        wait: Duration,
    },
    /// It could not be started again.
    StartFailed {
        /// Why not.
        error: EngineError,
        /// The wait before the next try.
        wait: Duration,
    },
    /// The model was loaded.
    Loaded {
        /// How long that took.
        took: Duration,
        /// Where it runs.
        device: DeviceInfo,
        /// Bytes of the device's memory that it takes.
        memory: u64,
    },
    /// The model could not be loaded.
    LoadFailed {
        /// Why not.
        error: EngineError,
        /// The wait before the next try.
        wait: Duration,
    },
    /// The model was let go.
    Unloaded {
        /// Why.
        reason: UnloadReason,
    },
    /// It runs again.
    Restarted {
        /// How long there was none.
        outage: Duration,
    },
}
