//! The state that all clones of an `EpisodeManager` share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::gateway::state::WaitQueues;
use stint_sessions::agent::{EpisodeStore, Settings, Tools, TurnStatistics};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// What all clones of an episode manager share.
pub(crate) struct EpisodeManagerInner {
    pub(crate) settings: Settings,
    pub(crate) tools: Arc<Tools>,
    pub(crate) store: Arc<dyn EpisodeStore>,
    pub(crate) metrics: Arc<Metrics>,
    /// Read by every step, without a lock; replaced as runs end.
    pub(crate) turns: Arc<ArcSwap<TurnStatistics>>,
    /// How many steps of each account wait for others.
    pub(crate) wait_queues: Arc<WaitQueues>,
    pub(super) tasks: Tasks,
    pub(super) store_slots: Arc<Semaphore>,
}
