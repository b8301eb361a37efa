//! What a model's engine is started from, as often as that is.

use std::sync::Arc;
use std::time::Duration;

use stint_gguf::Gguf;

use crate::engine_plan::EngineSize;
use crate::error::EngineError;
use crate::failure_cause::EngineEvent;
use crate::handle::{EngineLoad, Settings};
use crate::messages::EngineCounts;
use crate::restart::WeightsOpener;
use crate::supervised::{EngineListener, SupervisedEngine};

use super::entry::EngineTotals;

/// What a model's engine is started from.
pub struct EngineSpec {
    pub(super) size: EngineSize,
    settings: Settings,
    weights: Arc<WeightsOpener>,
    listener: Arc<EngineListener>,
    on_removal: Option<RemovalListener>,
}

/// Is told what a model's engines did, all of them together, once nobody has the model any more.
pub type RemovalListener = Box<dyn Fn(EngineCounts, EngineTotals) + Send + Sync>;

/// When a model is loaded, and for how long it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Whether it is loaded at the start; at the first request otherwise.
    pub load_on_startup: bool,
    /// How long it stays when nobody uses it. A model that is loaded at the start stays for good without it.
    pub keep_alive: Option<Duration>,
}

impl Default for Residency {
    fn default() -> Self {
        Residency { load_on_startup: true, keep_alive: None }
    }
}

impl Residency {
    /// Whether it is never let go.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.load_on_startup && self.keep_alive.is_none()
    }
}

impl EngineSpec {
    /// Measures what the engine will take. `weights` opens the same file whenever it is loaded; `listener` is told what happens
    /// to it.
    ///
    /// # Errors
    /// Why it could not run, as far as that can be told without loading it.
    pub fn new(
        gguf: &Gguf,
        weights: WeightsOpener,
        settings: Settings,
        listener: EngineListener,
    ) -> Result<Self, EngineError> {
        let size = EngineSize::measure(gguf, &settings)?;
        let (weights, listener) = (Arc::new(weights), Arc::new(listener));
        Ok(Self { size, settings, weights, listener, on_removal: None })
    }

    /// The same, with what is told of its end.
    #[must_use]
    pub fn on_removal(self, listener: RemovalListener) -> Self {
        Self { on_removal: Some(listener), ..self }
    }

    pub(super) fn tell_removal(&self, counts: EngineCounts, totals: EngineTotals) {
        self.on_removal.iter().for_each(|listener| listener(counts, totals));
    }

    /// Loads the weights and starts an engine on them. Blocks until that is done.
    pub(super) fn start(&self) -> Result<SupervisedEngine, EngineError> {
        let gguf = (self.weights)()?;
        let (weights, listener) = (Arc::clone(&self.weights), Arc::clone(&self.listener));
        let again: WeightsOpener = Box::new(move || weights());
        SupervisedEngine::start(&gguf, again, &self.settings, Box::new(move |event| listener(event)))
    }

    pub(super) fn tell(&self, event: &EngineEvent) {
        (self.listener)(event);
    }

    /// How busy it is while it is not loaded.
    pub(super) fn idle_load(&self) -> EngineLoad {
        let EngineSize { slots, blocks, .. } = self.size;
        EngineLoad {
            running: 0,
            waiting: 0,
            slots: slots as usize,
            blocks_free: blocks as usize,
            blocks_total: blocks as usize,
            counts: EngineCounts::default(),
        }
    }

    /// The most jobs that run or wait at once, and the most requests that may wait until it is loaded.
    pub(super) fn jobs_max(&self) -> usize {
        self.settings.queue.saturating_add(self.size.slots as usize)
    }
}
