//! What all clones of an episode manager share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::agent::{EpisodeStore, Settings, Tools, TurnStatistics};
use crate::gateway::state::wait_queues::WaitQueues;
use crate::metrics::Metrics;
use crate::tasks::Tasks;

/// What all clones of an episode manager share.
pub(in crate::gateway) struct EpisodeManagerInner {
    pub(in crate::gateway) settings: Settings,
    pub(in crate::gateway) tools: Arc<Tools>,
    pub(in crate::gateway) store: Arc<dyn EpisodeStore>,
    pub(in crate::gateway) metrics: Arc<Metrics>,
    /// Read by every step, without a lock; replaced as runs end.
    pub(in crate::gateway) turns: Arc<ArcSwap<TurnStatistics>>,
    /// How many steps of each account wait for others.
    pub(in crate::gateway) wait_queues: Arc<WaitQueues>,
    pub(super) tasks: Tasks,
    pub(super) store_slots: Arc<Semaphore>,
}
