//! A pool of engines, and the handle to one model in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stint_gguf::Gguf;

use crate::engine_plan::EngineSize;
use crate::error::EngineError;
use crate::failure_cause::{EngineOutage, FailureCause, UnloadReason};
use crate::gpu::DeviceInfo;
use crate::handle::{EngineLoad, Settings};
use crate::restart::WeightsOpener;
use crate::supervised::{EngineListener, SupervisedEngine};
use crate::worker_thread::WorkerThread;

use super::engine_spec::{EngineSpec, Residency};
use super::entry::{EngineTotals, Entry, LoadStage, Ticket};
use super::keeper::{finish_load, keep, let_go};
use super::lease::{EngineLease, Membership};
use super::lease_refusal::LeaseRefusal;
use super::room::Room;
use super::shared::PoolShared;
use super::state::{PoolState, Work};

/// How long a request waits for room where nothing else is said.
const WAIT_USUAL: Duration = Duration::from_secs(30);

/// When a model is asked for again that nobody could begin to load.
const RETRY_USUAL: Duration = Duration::from_secs(5);

/// How long the end waits for a load that is under way. It is inside of the driver.
const LOAD_LEFT_MAX: Duration = Duration::from_secs(10);

/// The engines of a process. Clones share them.
#[derive(Clone)]
pub struct EnginePool(Arc<PoolShared>);

/// A model in a pool: loaded, or to be loaded when it is asked for. Cheap to clone; when the last handle and the last lease are
/// gone its engine ends.
#[derive(Clone)]
pub struct PooledEngine {
    member: Arc<Membership>,
    spec: Arc<EngineSpec>,
}

/// Why a model takes no requests now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PooledOutage {
    /// Why, for callers: without the driver's message.
    pub reason: &'static str,
    /// When it may take some again, as far as that can be told.
    pub retry_in: Option<Duration>,
}

impl Default for EnginePool {
    fn default() -> Self {
        EnginePool(Arc::new(PoolShared::new(PoolState::new(WAIT_USUAL))))
    }
}

impl EnginePool {
    /// One more model. Nothing is loaded yet.
    #[must_use]
    pub fn add(&self, spec: EngineSpec, residency: Residency) -> PooledEngine {
        let spec = Arc::new(spec);
        let id = self.0.lock().add(Arc::clone(&spec), residency, Instant::now());
        PooledEngine { member: Arc::new(Membership { pool: Arc::clone(&self.0), id }), spec }
    }

    /// From now on a request waits for so long at most until others leave it room.
    pub fn set_wait_max(&self, wait_max: Duration) {
        self.0.lock().wait_max = wait_max;
    }

    /// Ends everything that runs or waits, for good. Blocks for one step of each engine at most, or for a load that is under
    /// way.
    pub fn stop(&self) {
        let mut state = self.0.lock();
        state.is_stopping = true;
        let take = |entry: &mut Entry| entry.take_engine(LoadStage::Unloaded);
        let engines: Vec<SupervisedEngine> = state.entries.values_mut().filter_map(take).collect();
        let keeper = state.keeper.take();
        drop(state);
        self.0.announce();
        engines.iter().for_each(SupervisedEngine::stop);
        if let Some(keeper) = keeper {
            keeper.wait(LOAD_LEFT_MAX);
        }
    }
}

impl PooledEngine {
    /// A model in a pool of its own, loaded, for those who have one alone.
    ///
    /// # Errors
    /// Why it cannot run.
    pub fn start(
        gguf: &Gguf,
        weights: WeightsOpener,
        settings: &Settings,
        listener: EngineListener,
    ) -> Result<Self, EngineError> {
        let spec = EngineSpec::new(gguf, weights, settings.clone(), listener)?;
        let engine = EnginePool::default().add(spec, Residency::default());
        engine.load_now()?;
        Ok(engine)
    }

    /// Loads it on this thread, where there is room: a model that stays for good is loaded in any case, and idle ones leave it
    /// room. False if it was not.
    ///
    /// # Errors
    /// Why it cannot run.
    pub fn load_now(&self) -> Result<bool, EngineError> {
        let Membership { pool, id } = &*self.member;
        loop {
            let mut state = pool.lock();
            let Some(entry) = state.entries.get(id).filter(|_| !state.is_stopping) else { return Ok(false) };
            let is_permanent = entry.residency.is_permanent();
            if entry.has_memory() {
                return Ok(true);
            }
            let now = Instant::now();
            match state.room_for(*id, now) {
                Room::AfterIdle(idle) if is_permanent => {
                    let first = idle.first().and_then(|id| state.let_go(*id, UnloadReason::Room, now));
                    drop(state);
                    if let Some(Work::LetGo(id, engine, reason)) = first {
                        let_go(pool, id, &engine, reason);
                        continue;
                    }
                    return Ok(false);
                }
                Room::Free => {}
                Room::AfterIdle(_) | Room::AfterBusy(_) | Room::Never if !is_permanent => return Ok(false),
                Room::AfterIdle(_) | Room::AfterBusy(_) | Room::Never => {}
            }
            let Some(spec) = state.start_loading(*id, now) else { return Ok(false) };
            drop(state);
            let loaded = spec.start();
            // Requests that wait for it hear of a failure by this.
            let failed = loaded.as_ref().err().cloned();
            let event = finish_load(pool, *id, loaded);
            if let Some(error) = failed {
                return Err(error);
            }
            event.iter().for_each(|event| spec.tell(event));
            if !is_permanent {
                self.ensure_keeper()?;
            }
            return Ok(true);
        }
    }

    /// The use of its engine, once it is loaded. Dropping the future gives the wait up.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn lease(&self) -> Result<EngineLease, LeaseRefusal> {
        self.lease_for(false).await
    }

    /// The same for the rest of an answer that was begun on it: one that yields to another model ends that first.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn lease_to_resume(&self) -> Result<EngineLease, LeaseRefusal> {
        self.lease_for(true).await
    }

    async fn lease_for(&self, resumes: bool) -> Result<EngineLease, LeaseRefusal> {
        let mut changes = self.member.pool.changes();
        let mut ticket = None;
        loop {
            changes.borrow_and_update();
            if let Some(leased) = self.try_lease(resumes, &mut ticket) {
                return leased;
            }
            self.ensure_keeper().map_err(|error| LeaseRefusal::Failed { error, retry_in: RETRY_USUAL })?;
            self.member.pool.wake();
            // An error says that the pool is gone, which this handle is a part of.
            if changes.changed().await.is_err() {
                return Err(LeaseRefusal::Stopped);
            }
        }
    }

    /// A lease, or why there is none; nothing where it is to be waited for, by this ticket.
    fn try_lease(
        &self,
        resumes: bool,
        ticket: &mut Option<WaitTicket>,
    ) -> Option<Result<EngineLease, LeaseRefusal>> {
        let Membership { pool, id } = &*self.member;
        let (mut state, now) = (pool.lock(), Instant::now());
        if let Some(leased) = state.lease(*id, resumes, now) {
            return Some(leased.map(|engine| EngineLease::new(engine, Arc::clone(&self.member))));
        }
        match ticket {
            Some(ticket) if state.is_refused(*id, ticket.place) => return Some(Err(LeaseRefusal::NoRoom)),
            Some(_) => {}
            None => match state.join(*id, now) {
                Ok(place) => *ticket = Some(WaitTicket { member: Arc::clone(&self.member), place }),
                Err(refused) => return Some(Err(refused)),
            },
        }
        None
    }

    /// The thread that loads models is there.
    fn ensure_keeper(&self) -> Result<(), EngineError> {
        let pool = &self.member.pool;
        let mut state = pool.lock();
        if state.keeper.as_ref().is_none_or(WorkerThread::has_left) && !state.is_stopping {
            let weak = Arc::downgrade(pool);
            state.keeper = Some(WorkerThread::start("models", move || keep(&weak))?);
        }
        Ok(())
    }

    /// Its configuration is in force: from now on it stays for so long, and its device's memory counts for all.
    ///
    /// # Errors
    /// The thread that lets models go cannot be started.
    pub fn activate(&self, residency: Residency) -> Result<(), EngineError> {
        self.member.pool.lock().activate(self.member.id, residency);
        if residency.is_permanent() { Ok(()) } else { self.ensure_keeper() }
    }

    /// How busy it is now. What its engines did before this one is counted in.
    #[must_use]
    pub fn load(&self) -> EngineLoad {
        self.with_entry(|entry| entry.load()).unwrap_or_else(|| self.spec.idle_load())
    }

    /// Whether it is in the device's memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.with_entry(|entry| entry.engine().is_some()).unwrap_or(false)
    }

    /// Whether it is never let go.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.with_entry(|entry| entry.residency.is_permanent()).unwrap_or(true)
    }

    /// Whether it takes requests, loaded or not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.outage().is_none()
    }

    /// Why it takes no requests now; nothing if it does.
    #[must_use]
    pub fn outage(&self) -> Option<PooledOutage> {
        let state = self.member.pool.lock();
        let stopped = PooledOutage { reason: "the engine was stopped", retry_in: None };
        let Some(entry) = state.entries.get(&self.member.id).filter(|_| !state.is_stopping) else {
            return Some(stopped);
        };
        match &entry.stage {
            LoadStage::Loaded(engine) => {
                let EngineOutage { cause, retry_in } = engine.outage()?;
                Some(PooledOutage {
                    reason: cause.map_or(stopped.reason, FailureCause::for_caller),
                    retry_in,
                })
            }
            LoadStage::Failed { until, .. } => {
                let left = until.checked_duration_since(Instant::now())?;
                Some(PooledOutage {
                    reason: "it could not be loaded; it is tried again",
                    retry_in: Some(left),
                })
            }
            LoadStage::Unloaded | LoadStage::Loading { .. } | LoadStage::Leaving => None,
        }
    }

    /// How long a request would wait now until it is loaded, as far as that can be told.
    #[must_use]
    pub fn expected_wait(&self) -> Duration {
        self.member.pool.lock().expected_wait(self.member.id, Instant::now())
    }

    /// What its engines did, all of them together.
    #[must_use]
    pub fn totals(&self) -> EngineTotals {
        self.with_entry(|entry| entry.totals()).unwrap_or_default()
    }

    /// How long a step of one sequence took when it was loaded last, with nothing beside it; nothing before the first time.
    #[must_use]
    pub fn single_step(&self) -> Option<Duration> {
        self.with_entry(|entry| entry.single_step).flatten()
    }

    /// The device it runs on, once it is loaded.
    #[must_use]
    pub fn device(&self) -> Option<DeviceInfo> {
        self.with_entry(|entry| entry.engine().map(|engine| engine.device().clone())).flatten()
    }

    /// What it has and takes once it is loaded.
    #[must_use]
    pub fn size(&self) -> EngineSize {
        self.spec.size
    }

    /// The most tokens that prompt and budgets of one job may have together.
    #[must_use]
    pub fn context(&self) -> u32 {
        self.spec.size.context
    }

    /// The most jobs that it has at once, those that wait among them.
    #[must_use]
    pub fn jobs_max(&self) -> usize {
        self.spec.jobs_max()
    }

    /// The size of the vocabulary.
    #[must_use]
    pub fn vocab(&self) -> u32 {
        self.spec.size.vocab
    }

    /// Bytes of the device's memory that it takes when it is loaded.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.spec.size.memory
    }

    /// Whether it fits beside models that have so many bytes and keep them.
    #[must_use]
    pub fn fits_beside(&self, taken: u64) -> bool {
        let needed = taken.saturating_add(self.spec.size.memory);
        self.spec.size.memory_max.is_none_or(|most| needed <= most)
    }

    /// Ends it and all others of its pool, for good.
    pub fn stop(&self) {
        EnginePool(Arc::clone(&self.member.pool)).stop();
    }

    /// Lets a fault happen to the engine that runs.
    #[cfg(any(test, feature = "faults"))]
    pub fn inject(&self, fault: crate::faults::InjectedFault) {
        if let Some(engine) = self.with_entry(|entry| entry.engine().cloned()).flatten() {
            engine.inject(fault);
        }
    }

    fn with_entry<T>(&self, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.member.pool.lock().entries.get_mut(&self.member.id).map(look)
    }
}

/// A request's place among those that wait for a model.
struct WaitTicket {
    member: Arc<Membership>,
    place: Ticket,
}

impl Drop for WaitTicket {
    fn drop(&mut self) {
        let Membership { pool, id } = &*self.member;
        pool.lock().leave(*id, self.place);
        pool.wake();
    }
}

impl std::fmt::Debug for EnginePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnginePool").field("models", &self.0.lock().entries.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PooledEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PooledEngine").field("is_loaded", &self.is_loaded()).finish_non_exhaustive()
    }
}
