//! What a pool does next. It only decides: the keeper does it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::failure_cause::UnloadReason;
use crate::supervised::SupervisedEngine;
use crate::worker_thread::WorkerThread;

use super::engine_spec::{EngineSpec, Residency};
use super::entry::{Entry, LoadStage};
use super::lease_refusal::LeaseRefusal;
use super::room::{Hold, ModelId, Occupant, Room, find_room};

/// A keeper that has nothing to do looks again after so long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a pool does next.
pub(super) enum Work {
    /// Nothing any more.
    End,
    /// Nothing for so long, unless something changes.
    Wait(Duration),
    Load(ModelId, Arc<EngineSpec>),
    LetGo(ModelId, SupervisedEngine, UnloadReason),
}

/// All models of a pool.
pub(super) struct PoolState {
    /// Bytes that all may take together, where that is known.
    memory_max: Option<u64>,
    /// How long a request waits for room.
    pub(super) wait_max: Duration,
    pub(super) entries: BTreeMap<ModelId, Entry>,
    next_id: ModelId,
    pub(super) is_stopping: bool,
    pub(super) keeper: Option<WorkerThread>,
    /// Whether something was decided that requests wait for.
    has_news: bool,
    /// Threads that load and were given up, with the bytes that they may have.
    given_up: Vec<(WorkerThread, u64)>,
}

impl PoolState {
    pub(super) fn new(wait_max: Duration) -> Self {
        PoolState {
            memory_max: None,
            wait_max,
            entries: BTreeMap::new(),
            next_id: 0,
            is_stopping: false,
            keeper: None,
            has_news: false,
            given_up: Vec::new(),
        }
    }

    /// One more model. What it was measured beside counts from now on.
    pub(super) fn add(&mut self, spec: Arc<EngineSpec>, residency: Residency, now: Instant) -> ModelId {
        let id = self.next_id;
        self.next_id += 1;
        self.memory_max = spec.size.memory_max;
        self.entries.insert(id, Entry::new(spec, residency, now));
        id
    }

    /// A lease of a model's engine: the engine; why there is none; or nothing where it is to be waited for.
    pub(super) fn lease(
        &mut self,
        id: ModelId,
        now: Instant,
    ) -> Option<Result<SupervisedEngine, LeaseRefusal>> {
        if self.is_stopping {
            return Some(Err(LeaseRefusal::Stopped));
        }
        let Some(entry) = self.entries.get_mut(&id) else { return Some(Err(LeaseRefusal::Stopped)) };
        if let LoadStage::Failed { error, until } = &entry.stage
            && now < *until
        {
            let retry_in = until.saturating_duration_since(now);
            return Some(Err(LeaseRefusal::Failed { error: error.clone(), retry_in }));
        }
        let engine = entry.open_engine()?.clone();
        entry.leases += 1;
        entry.last_used = now;
        Some(Ok(engine))
    }

    /// A request waits for a model from now on. Returns the round that it waits in.
    pub(super) fn join(&mut self, id: ModelId, now: Instant) -> Result<u64, LeaseRefusal> {
        let Some(entry) = self.entries.get_mut(&id) else { return Err(LeaseRefusal::Stopped) };
        if entry.waiters >= entry.spec.waiters_max() {
            return Err(LeaseRefusal::Busy);
        }
        entry.waiters += 1;
        entry.wanted_since.get_or_insert(now);
        Ok(entry.refusals)
    }

    /// Whether those who waited in this round were refused.
    pub(super) fn is_refused(&self, id: ModelId, round: u64) -> bool {
        self.entries.get(&id).is_some_and(|entry| entry.refusals != round)
    }

    /// A request of this round waits no more.
    pub(super) fn leave(&mut self, id: ModelId, round: u64) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.refusals == round) else { return };
        entry.waiters = entry.waiters.saturating_sub(1);
        if entry.waiters == 0 {
            entry.wanted_since = None;
        }
    }

    /// Nobody uses it for this request any more. True if it is idle now.
    pub(super) fn release(&mut self, id: ModelId, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.leases = entry.leases.saturating_sub(1);
        entry.last_used = now;
        entry.leases == 0
    }

    /// What is to be done now. What it says is as good as done: it is not said twice.
    pub(super) fn next_work(&mut self, now: Instant) -> Work {
        if self.is_stopping {
            return Work::End;
        }
        let expired = self.entries.iter().find(|(_, entry)| entry.expires().is_some_and(|at| at <= now));
        if let Some(work) = expired.map(|(id, _)| *id).and_then(|id| self.let_go(id, UnloadReason::Idle)) {
            return work;
        }
        let found = self.first_wanted(now).map(|wanted| (wanted, self.room_for(wanted)));
        self.mark_yielding(found.as_ref(), now);
        match found {
            None => Work::Wait(self.until_next(now)),
            Some((id, Room::Free)) => self.begin_load(id, now),
            Some((_, Room::AfterIdle(idle))) => {
                let first = idle.first().and_then(|id| self.let_go(*id, UnloadReason::Room));
                first.unwrap_or(Work::Wait(LOOK_EVERY))
            }
            Some((id, Room::AfterBusy(_))) => {
                if self.waited(id, now) >= self.wait_max {
                    self.refuse(id);
                }
                Work::Wait(self.until_next(now).min(Duration::from_millis(100)))
            }
            Some((id, Room::Never)) => {
                self.refuse(id);
                Work::Wait(Duration::ZERO)
            }
        }
    }

    /// The model that requests have waited for longest. Nobody overtakes: a large one would never find enough room.
    fn first_wanted(&self, now: Instant) -> Option<ModelId> {
        let can_load = |stage: &LoadStage| match stage {
            LoadStage::Unloaded => true,
            LoadStage::Failed { until, .. } => *until <= now,
            LoadStage::Loading { .. } | LoadStage::Loaded(_) | LoadStage::Leaving => false,
        };
        let wanted = self.entries.iter().filter(|(_, entry)| entry.waiters > 0 && can_load(&entry.stage));
        wanted.min_by_key(|(_, entry)| entry.wanted_since).map(|(id, _)| *id)
    }

    /// Where there is room for a model.
    pub(super) fn room_for(&mut self, id: ModelId) -> Room {
        self.given_up.retain(|(thread, _)| !thread.has_left());
        let Some(bytes) = self.entries.get(&id).map(|entry| entry.spec.size.memory) else {
            return Room::Never;
        };
        find_room(self.memory_max, &self.occupants(), bytes)
    }

    fn occupants(&self) -> Vec<Occupant> {
        let others = self.entries.iter().filter(|(_, entry)| entry.has_memory());
        let of = |(id, entry): (&ModelId, &Entry)| {
            let hold = match entry.stage {
                LoadStage::Loaded(_) if entry.residency.is_permanent() => Hold::Fixed,
                LoadStage::Loaded(_) if entry.leases > 0 => Hold::Busy(entry.last_used),
                LoadStage::Loaded(_) => Hold::Idle(entry.last_used),
                _ => Hold::Busy(entry.last_used),
            };
            Occupant { id: *id, bytes: entry.spec.size.memory, hold }
        };
        let given_up = self.given_up.iter().map(|(_, bytes)| Occupant {
            id: ModelId::MAX,
            bytes: *bytes,
            hold: Hold::Fixed,
        });
        others.map(of).chain(given_up).collect()
    }

    /// Models in the way of one that has waited as long as its loading takes take no more requests until they are let go, so
    /// that one which is always in use keeps no other out. All others take them.
    fn mark_yielding(&mut self, found: Option<&(ModelId, Room)>, now: Instant) {
        let yielding = match found {
            Some((id, Room::AfterBusy(in_the_way))) if self.waited(*id, now) >= self.expected_load(*id) => {
                &in_the_way[..]
            }
            _ => &[],
        };
        for (id, entry) in &mut self.entries {
            let yields = yielding.contains(id);
            // Requests that wait for it may have it again.
            self.has_news |= entry.is_yielding && !yields;
            entry.is_yielding = yields;
        }
    }

    fn waited(&self, id: ModelId, now: Instant) -> Duration {
        let since = self.entries.get(&id).and_then(|entry| entry.wanted_since);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn expected_load(&self, id: ModelId) -> Duration {
        self.entries.get(&id).map_or(Duration::ZERO, |entry| entry.load_time.expected())
    }

    fn begin_load(&mut self, id: ModelId, now: Instant) -> Work {
        self.start_loading(id, now).map_or(Work::Wait(LOOK_EVERY), |spec| Work::Load(id, spec))
    }

    /// Counts a model's memory, which is about to be loaded.
    pub(super) fn start_loading(&mut self, id: ModelId, now: Instant) -> Option<Arc<EngineSpec>> {
        let entry = self.entries.get_mut(&id)?;
        entry.stage = LoadStage::Loading { since: now };
        Some(entry.spec.clone())
    }

    /// Takes the engine of a model that nobody uses.
    pub(super) fn let_go(&mut self, id: ModelId, reason: UnloadReason) -> Option<Work> {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.leases == 0)?;
        let engine = entry.take_engine(LoadStage::Leaving)?;
        if let Some((_, count)) =
            UnloadReason::ALL.iter().zip(&mut entry.totals.unloads).find(|(known, _)| **known == reason)
        {
            *count += 1;
        }
        Some(Work::LetGo(id, engine, reason))
    }

    /// Its memory is free.
    pub(super) fn finish_leaving(&mut self, id: ModelId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.stage = LoadStage::Unloaded;
            entry.is_yielding = false;
        }
    }

    /// A thread that loads hangs. It may have what it was to load.
    pub(super) fn give_up(&mut self, thread: WorkerThread, bytes: u64) {
        self.given_up.push((thread, bytes));
    }

    /// Those who wait for it hear that there is no room.
    fn refuse(&mut self, id: ModelId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.refusals += 1;
            entry.waiters = 0;
            entry.wanted_since = None;
            self.has_news = true;
        }
    }

    /// Whether something was decided that requests wait for, since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The most that loading a model may take.
    pub(super) fn load_time_max(&self, id: ModelId, factor: u32, more: Duration) -> Duration {
        self.expected_load(id).saturating_mul(factor).saturating_add(more)
    }

    fn until_next(&self, now: Instant) -> Duration {
        let next = self.entries.values().filter_map(Entry::expires).min();
        next.map_or(LOOK_EVERY, |at| at.saturating_duration_since(now).min(LOOK_EVERY))
    }

    /// How long a request would wait now until a model is loaded: for those before it, for room, and for its own loading.
    pub(super) fn expected_wait(&mut self, id: ModelId, now: Instant) -> Duration {
        let Some(entry) = self.entries.get(&id) else { return Duration::ZERO };
        let own = entry.load_time.expected();
        let wait = match &entry.stage {
            LoadStage::Loaded(_) if !entry.is_yielding => return Duration::ZERO,
            LoadStage::Loading { since } => return own.saturating_sub(now.saturating_duration_since(*since)),
            LoadStage::Failed { until, .. } => own + until.saturating_duration_since(now),
            LoadStage::Loaded(_) | LoadStage::Unloaded | LoadStage::Leaving => own,
        };
        let since = entry.wanted_since;
        let ahead = self.entries.iter().filter(|(other, entry)| {
            let waits_longer =
                entry.wanted_since.is_some_and(|other| since.is_none_or(|since| other < since));
            **other != id && (waits_longer || matches!(entry.stage, LoadStage::Loading { .. }))
        });
        let ahead: Duration = ahead.map(|(_, entry)| entry.load_time.expected()).sum();
        // Those in the way go on for as long as its loading takes, and then with what they have begun.
        let in_the_way = if matches!(self.room_for(id), Room::AfterBusy(_)) { own } else { Duration::ZERO };
        wait + ahead + in_the_way
    }
}
