//! The handle to an engine that is started again when it fails.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use stint_gguf::Gguf;

use super::error::{EngineError, JobRejection};
use super::failure_cause::{EngineEvent, EngineOutage, FailureCause};
use super::gpu::DeviceInfo;
use super::handle::{Engine, EngineLoad, GenerationJob, Settings};
use super::restart::{EngineOpener, Restarter, WeightsOpener};
use super::supervisor::{SupervisedState, supervise};
use super::token_stream::TokenStream;
use super::worker_thread::WorkerThread;

/// How long the end waits for a start that is under way. It is inside of the driver.
const START_LEFT_MAX: Duration = Duration::from_secs(10);

/// An engine, and after each of its failures the next one on the same weights. Cheap to clone; when the last handle is gone
/// the engine ends its work, and no other follows.
#[derive(Clone)]
pub struct SupervisedEngine(pub(crate) Arc<SupervisedInner>);

/// A handle to an engine that does not keep it running.
#[derive(Clone)]
pub struct WeakSupervisedEngine(Weak<SupervisedInner>);

impl WeakSupervisedEngine {
    /// The engine, where anybody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<SupervisedEngine> {
        self.0.upgrade().map(SupervisedEngine)
    }
}

/// Is told of every failure and every start.
pub type EngineListener = Box<dyn Fn(&EngineEvent) + Send + Sync>;

pub(crate) struct SupervisedInner {
    state: Mutex<SupervisedState>,
    pub(crate) listener: EngineListener,
    /// What holds for each of the engines.
    device: DeviceInfo,
    context: u32,
    vocab: u32,
    weight_bytes: u64,
    memory_bytes: u64,
    single_step: Duration,
}

impl SupervisedEngine {
    /// Starts the first engine, as [`Engine::start`] does, and the thread that watches it. `weights` opens the same file again.
    ///
    /// # Errors
    /// Why it cannot run. Then there is nothing to start again.
    pub fn start(
        gguf: &Gguf,
        weights: WeightsOpener,
        settings: &Settings,
        listener: EngineListener,
    ) -> Result<Self, EngineError> {
        let began = Instant::now();
        let engine = Engine::start(gguf, settings)?;
        let device = engine.device().clone();
        let (context, vocab, weight_bytes) = (engine.context(), engine.vocab(), engine.weight_bytes());
        let (memory_bytes, single_step) = (engine.memory_bytes(), engine.single_step());
        let opener = EngineOpener { weights, settings: settings.clone(), device: device.clone() };
        let restarter = Restarter::new(opener, began.elapsed());
        let state = Mutex::new(SupervisedState::new(engine, restarter));
        let inner = Arc::new(SupervisedInner {
            state,
            listener,
            device,
            context,
            vocab,
            weight_bytes,
            memory_bytes,
            single_step,
        });
        let watched = Arc::downgrade(&inner);
        // It does not touch the device, so nobody waits for it.
        let _ = WorkerThread::start("engine watch", move || supervise(&watched))?;
        Ok(Self(inner))
    }

    /// Takes a job, or says at once why not. Never blocks.
    ///
    /// # Errors
    /// [`JobRejection::Restarting`] while there is no engine; else as [`Engine::generate`].
    pub fn generate(&self, job: GenerationJob) -> Result<TokenStream, JobRejection> {
        let engine = self.0.lock().engine().cloned().ok_or(JobRejection::Restarting)?;
        engine.generate(job).map_err(|refused| match refused {
            // It failed just now, and the watch will see it.
            JobRejection::Stopped if !self.0.lock().is_stopped() => JobRejection::Restarting,
            other => other,
        })
    }

    /// How busy it is now. What engines before this one did is counted in.
    #[must_use]
    pub fn load(&self) -> EngineLoad {
        self.0.lock().load()
    }

    /// Whether it takes jobs now.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.lock().engine().is_some_and(Engine::is_alive)
    }

    /// Why it takes no jobs now, and when it may again; nothing if it does.
    #[must_use]
    pub fn outage(&self) -> Option<EngineOutage> {
        self.0.lock().outage()
    }

    /// How often an engine was to be started again, by why the one before had failed, in the order of [`FailureCause::ALL`].
    #[must_use]
    pub fn restarts(&self) -> [(FailureCause, u64); FailureCause::ALL.len()] {
        self.0.lock().restarts()
    }

    /// A handle that does not keep it running.
    #[must_use]
    pub fn downgrade(&self) -> WeakSupervisedEngine {
        WeakSupervisedEngine(Arc::downgrade(&self.0))
    }

    /// How long a step of one sequence took at the first start, with nothing beside it.
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

    /// Bytes of the device's memory that it takes: weights, cache, and what steps compute in.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes
    }

    /// The size of the vocabulary.
    #[must_use]
    pub fn vocab(&self) -> u32 {
        self.0.vocab
    }

    /// Bytes of weights that one token reads.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes
    }

    /// Ends everything that runs or waits, for good. Blocks for one step at most, or for a start that is under way.
    pub fn stop(&self) {
        let ended = self.0.lock().stop();
        if let Some(engine) = ended.engine {
            engine.stop();
        }
        if let Some(start) = ended.start
            && let Some(engine) = start.wait(START_LEFT_MAX)
        {
            engine.stop();
        }
    }

    /// Lets a fault happen to the engine that runs.
    #[cfg(any(test, feature = "faults"))]
    pub fn inject(&self, fault: super::faults::InjectedFault) {
        if let Some(engine) = self.0.lock().engine() {
            engine.inject(fault);
        }
    }
}

impl SupervisedInner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, SupervisedState> {
        // Every change is made whole between taking and letting go of the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SupervisedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SupervisedEngine").field("device", &self.0.device.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WeakSupervisedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakSupervisedEngine")
    }
}
