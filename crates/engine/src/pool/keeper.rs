//! The thread that loads models and lets them go. One thing at a time: two loads at once would share disk and device.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::error::EngineError;
use crate::failure_cause::{EngineEvent, UnloadReason};
use crate::supervised::SupervisedEngine;
use crate::worker_thread::WorkerThread;

use super::engine_spec::EngineSpec;
use super::room::ModelId;
use super::shared::PoolShared;
use super::state::Work;

/// A load may take so many times as long as it is expected to, and so much more: a disk may be far away.
const LOAD_FACTOR: u32 = 4;
const LOAD_MORE: Duration = Duration::from_mins(10);

/// Does what is to be done, until the pool is stopped or nobody has it any more.
pub(super) fn keep(pool: &Weak<PoolShared>) {
    while let Some(pool) = pool.upgrade() {
        let mut state = pool.lock();
        let work = state.next_work(Instant::now());
        // What it decided may be what a request waits for.
        let has_news = state.take_news();
        if has_news {
            pool.announce();
        }
        match work {
            Work::End => return,
            // Those who heard it look at the state, and change it.
            Work::Wait(_) if has_news => {}
            Work::Wait(most) => pool.wait(state, most),
            Work::Load(id, spec) => {
                let most = state.load_time_max(id, LOAD_FACTOR, LOAD_MORE);
                drop(state);
                let loaded = load_within(&pool, &spec, most);
                if let Some(event) = finish_load(&pool, id, loaded) {
                    spec.tell(&event);
                }
            }
            Work::LetGo(id, engine, reason) => {
                drop(state);
                let_go(&pool, id, &engine, reason);
            }
        }
    }
}

/// Loads on a thread of its own, which is given up when it takes too long: a driver may hang.
fn load_within(
    pool: &PoolShared,
    spec: &Arc<EngineSpec>,
    most: Duration,
) -> Result<SupervisedEngine, EngineError> {
    let (sender, result) = channel();
    let spec_there = Arc::clone(spec);
    let thread = WorkerThread::start("model load", move || {
        // Nobody may want it any more: then it ends.
        let _ = sender.send(spec_there.start());
    })?;
    match result.recv_timeout(most) {
        Ok(loaded) => loaded,
        Err(RecvTimeoutError::Disconnected) => {
            Err(EngineError::Panicked("while the model was loaded".into()))
        }
        Err(RecvTimeoutError::Timeout) => {
            pool.lock().give_up(thread, spec.size.memory);
            Err(EngineError::StartTimeout(most))
        }
    }
}

/// A model was loaded, or not. Returns what is to be told of that, where anybody still has it.
pub(super) fn finish_load(
    pool: &PoolShared,
    id: ModelId,
    loaded: Result<SupervisedEngine, EngineError>,
) -> Option<EngineEvent> {
    let mut state = pool.lock();
    let is_stopping = state.is_stopping;
    let unwanted = if is_stopping { loaded.as_ref().ok().cloned() } else { None };
    let event = state.entries.get_mut(&id).map(|entry| entry.finish_load(loaded, Instant::now()));
    drop(state);
    pool.announce();
    if let Some(engine) = unwanted {
        engine.stop();
    }
    event
}

/// Stops the engine of a model that nobody uses, and frees its memory.
pub(super) fn let_go(pool: &PoolShared, id: ModelId, engine: &SupervisedEngine, reason: UnloadReason) {
    engine.stop();
    let mut state = pool.lock();
    state.finish_leaving(id);
    let spec = state.entries.get(&id).map(|entry| Arc::clone(&entry.spec));
    drop(state);
    pool.announce();
    if let Some(spec) = spec {
        spec.tell(&EngineEvent::Unloaded { reason });
    }
}
