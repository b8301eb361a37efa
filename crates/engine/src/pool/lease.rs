//! The use of an engine by one request: as long as it lasts, the model is not let go.

use std::sync::Arc;
use std::time::Instant;

use crate::supervised::SupervisedEngine;

use super::room::ModelId;
use super::shared::PoolShared;

/// An engine that is loaded, and stays so until this is dropped.
#[must_use = "the model may be let go once this is dropped"]
pub struct EngineLease {
    engine: SupervisedEngine,
    member: Arc<Membership>,
    may_resume: bool,
}

/// A model's place in its pool.
pub(super) struct Membership {
    pub(super) pool: Arc<PoolShared>,
    pub(super) id: ModelId,
}

impl Drop for Membership {
    /// Nobody has the model any more. What runs on its engine has ended, for that would have a lease.
    fn drop(&mut self) {
        let entry = self.pool.lock().entries.remove(&self.id);
        entry.iter().for_each(|entry| entry.spec.tell_removal(entry.load().counts, entry.totals()));
        drop(entry);
        self.pool.wake();
    }
}

impl EngineLease {
    pub(super) fn new(engine: SupervisedEngine, member: Arc<Membership>) -> Self {
        Self { engine, member, may_resume: false }
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &SupervisedEngine {
        &self.engine
    }

    /// Whether the request may come back at once for the rest of its answer: the model is kept for it for a moment.
    pub fn set_may_resume(&mut self, may_resume: bool) {
        self.may_resume = may_resume;
    }
}

impl Drop for EngineLease {
    fn drop(&mut self) {
        let Membership { pool, id } = &*self.member;
        let is_idle = pool.lock().release(*id, self.may_resume, Instant::now());
        if is_idle {
            pool.wake();
        }
    }
}

impl std::fmt::Debug for EngineLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineLease").field("engine", &self.engine).finish_non_exhaustive()
    }
}
