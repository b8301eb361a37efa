//! Tracked background work, so that shutdown can wait for it.

mod lag;
mod large_json;
mod long_work;
mod turns;

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use lag::EventLoopLag;
pub use large_json::{text_bytes, write_json};
pub use long_work::run_in_place;
pub use turns::{AccountTurns, Turn};

/// Spawns tasks and knows which still run. Clones share one set of tasks.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
    force_stop: CancellationToken,
}

impl Tasks {
    /// Runs `work` to its end, also when nobody waits for it.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work = self.tracker.track_future(work);
        #[cfg(not(feature = "shuttle"))]
        drop(tokio::spawn(work));
        #[cfg(feature = "shuttle")]
        drop(shuttle::future::spawn(work));
    }

    /// Resolves when shutdown begins; long-lived loops select on it.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stopping.clone().cancelled_owned()
    }

    /// True from the beginning of shutdown on.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Begins shutdown: loops stop taking new work.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.tracker.close();
    }

    /// Resolves when patience has ended: what still runs must end now.
    pub fn force_stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        self.force_stop.clone().cancelled_owned()
    }

    /// True from the end of shutdown's patience on.
    pub fn is_force_stopping(&self) -> bool {
        self.force_stop.is_cancelled()
    }

    /// Ends shutdown's patience.
    pub fn force_stop(&self) {
        self.force_stop.cancel();
    }

    /// Waits until every task has ended, at most `patience`; returns whether all did.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait()).await.is_ok()
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.tracker.len()
    }
}
