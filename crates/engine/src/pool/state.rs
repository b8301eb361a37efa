//! What a pool does next. It only decides: the keeper does it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::failure_cause::UnloadReason;
use crate::supervised::SupervisedEngine;
use crate::worker_thread::WorkerThread;

use super::engine_spec::{EngineSpec, Residency};
use super::entry::{Entry, LoadStage, Ticket};
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
    next_ticket: Ticket,
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
            next_ticket: 0,
            is_stopping: false,
            keeper: None,
            has_news: false,
            given_up: Vec::new(),
        }
    }

    /// One more model. The first one's memory counts for all, until another is in force.
    pub(super) fn add(&mut self, spec: Arc<EngineSpec>, residency: Residency, now: Instant) -> ModelId {
        let id = self.next_id;
        self.next_id += 1;
        self.memory_max = self.memory_max.or(spec.size.memory_max);
        self.entries.insert(id, Entry::new(spec, residency, now));
        id
    }

    /// A model is in force: it stays for so long, and what it was measured beside counts from now on.
    pub(super) fn activate(&mut self, id: ModelId, residency: Residency) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.residency = residency;
            self.memory_max = entry.spec.size.memory_max;
        }
    }

    /// A lease of a model's engine: the engine; why there is none; or nothing where it is to be waited for. A model that yields
    /// ends what it has begun, the rest of an answer too.
    pub(super) fn lease(
        &mut self,
        id: ModelId,
        resumes: bool,
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
        let engine = if resumes { entry.engine() } else { entry.open_engine() }?.clone();
        entry.leases += 1;
        entry.last_used = now;
        Some(Ok(engine))
    }

    /// A request waits for a model from now on.
    pub(super) fn join(&mut self, id: ModelId, now: Instant) -> Result<Ticket, LeaseRefusal> {
        let Some(entry) = self.entries.get_mut(&id) else { return Err(LeaseRefusal::Stopped) };
        if entry.waiters.len() >= entry.spec.jobs_max() {
            return Err(LeaseRefusal::Busy);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        entry.waiters.insert(ticket, now);
        Ok(ticket)
    }

    /// Whether a request that waited was refused.
    pub(super) fn is_refused(&self, id: ModelId, ticket: Ticket) -> bool {
        self.entries.get(&id).is_some_and(|entry| !entry.waiters.contains_key(&ticket))
    }

    /// A request waits no more.
    pub(super) fn leave(&mut self, id: ModelId, ticket: Ticket) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.waiters.remove(&ticket);
        if entry.waiters.is_empty() {
            entry.no_room_since = None;
        }
    }

    /// Nobody uses it for this request any more. True if no other does.
    pub(super) fn release(&mut self, id: ModelId, may_resume: bool, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.release(may_resume, now);
        entry.leases == 0
    }

    /// What is to be done now. What it says is as good as done: it is not said twice.
    pub(super) fn next_work(&mut self, now: Instant) -> Work {
        if self.is_stopping {
            return Work::End;
        }
        let expired = self.entries.iter().find(|(_, entry)| entry.expires().is_some_and(|at| at <= now));
        if let Some(work) = expired.map(|(id, _)| *id).and_then(|id| self.let_go(id, UnloadReason::Idle, now))
        {
            return work;
        }
        let found = self.first_wanted(now).map(|wanted| (wanted, self.room_for(wanted, now)));
        self.mark_yielding(found.as_ref(), now);
        match found {
            None => Work::Wait(self.until_next(now)),
            Some((id, Room::Free)) => self.begin_load(id, now),
            Some((_, Room::AfterIdle(idle))) => {
                let first = idle.first().and_then(|id| self.let_go(*id, UnloadReason::Room, now));
                first.unwrap_or(Work::Wait(LOOK_EVERY))
            }
            Some((id, Room::AfterBusy(_))) => {
                self.refuse_late(id, now);
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
        let wanted = self.entries.iter().filter(|(_, entry)| can_load(&entry.stage));
        let since = wanted.filter_map(|(id, entry)| Some((entry.wanted_since()?, *id)));
        since.min().map(|(_, id)| id)
    }

    /// Where there is room for a model.
    pub(super) fn room_for(&mut self, id: ModelId, now: Instant) -> Room {
        self.given_up.retain(|(thread, _)| !thread.has_left());
        let Some(bytes) = self.entries.get(&id).map(|entry| entry.spec.size.memory) else {
            return Room::Never;
        };
        find_room(self.memory_max, &self.occupants(now), bytes)
    }

    fn occupants(&self, now: Instant) -> Vec<Occupant> {
        let others = self.entries.iter().filter(|(_, entry)| entry.has_memory());
        let of = |(id, entry): (&ModelId, &Entry)| {
            let hold = match entry.stage {
                LoadStage::Loaded(_) if entry.residency.is_permanent() => Hold::Fixed,
                LoadStage::Loaded(_) if entry.is_busy(now) => Hold::Busy(entry.last_used),
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

    /// Models in the way of one that has waited for room for long enough take no more requests until they are let go, so that
    /// one which is always in use keeps no other out. All others take them.
    fn mark_yielding(&mut self, found: Option<&(ModelId, Room)>, now: Instant) {
        let (in_the_way, is_due) = match found {
            Some((id, Room::AfterBusy(busy))) => {
                (&busy[..], self.without_room(*id, now) >= self.patience(*id))
            }
            // They have ended what they had begun.
            Some((_, Room::AfterIdle(idle))) => (&idle[..], false),
            _ => (&[][..], false),
        };
        for (id, entry) in &mut self.entries {
            let yields = in_the_way.contains(id) && (is_due || entry.is_yielding);
            // Requests that wait for it may have it again.
            self.has_news |= entry.is_yielding && !yields;
            entry.is_yielding = yields;
        }
    }

    /// How long requests have waited for others to leave a model room. It counts from the first such look.
    fn without_room(&mut self, id: ModelId, now: Instant) -> Duration {
        let entry = self.entries.get_mut(&id);
        entry.map_or(Duration::ZERO, |entry| {
            now.saturating_duration_since(*entry.no_room_since.get_or_insert(now))
        })
    }

    /// How long those in a model's way take more requests: as long as its loading takes, and no longer than leaves them time to
    /// end what they have begun before it is refused.
    fn patience(&self, id: ModelId) -> Duration {
        self.expected_load(id).min(self.wait_max / 2)
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
        entry.no_room_since = None;
        Some(entry.spec.clone())
    }

    /// Takes the engine of a model that nobody uses.
    pub(super) fn let_go(&mut self, id: ModelId, reason: UnloadReason, now: Instant) -> Option<Work> {
        let entry = self.entries.get_mut(&id).filter(|entry| !entry.is_busy(now))?;
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
            entry.waiters.clear();
            entry.no_room_since = None;
            self.has_news = true;
        }
    }

    /// Those hear it who have waited for room for long enough. Loading others is no part of that.
    fn refuse_late(&mut self, id: ModelId, now: Instant) {
        let wait_max = self.wait_max;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(no_room_since) = entry.no_room_since else { return };
        let waiting = entry.waiters.len();
        entry.waiters.retain(|_, since| now.saturating_duration_since(no_room_since.max(*since)) < wait_max);
        self.has_news |= entry.waiters.len() < waiting;
        if entry.waiters.is_empty() {
            entry.no_room_since = None;
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
        let since = entry.wanted_since();
        let ahead = self.entries.iter().filter(|(other, entry)| {
            let waits_longer =
                entry.wanted_since().is_some_and(|other| since.is_none_or(|since| other < since));
            **other != id && (waits_longer || matches!(entry.stage, LoadStage::Loading { .. }))
        });
        let ahead: Duration = ahead.map(|(_, entry)| entry.load_time.expected()).sum();
        // Those in the way take more for so long, and then end what they have begun.
        let is_in_use = matches!(self.room_for(id, now), Room::AfterBusy(_));
        let in_the_way = if is_in_use { self.patience(id) } else { Duration::ZERO };
        wait + ahead + in_the_way
    }
}
