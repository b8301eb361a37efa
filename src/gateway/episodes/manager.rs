//! `EpisodeManager`: the gateway's handle on episodes of agents. It has their settings, their store, and the usual number
//! of turns.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use stint_sessions::agent::{AnsweredStep, BrokenOffStep, EpisodeStore, EpisodesError, Settings};
use stint_types::chat::EpisodeLimits;
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::inner::EpisodeManagerInner;
use super::upkeep;

/// How long the store may take to say what it knows of an episode.
pub(crate) const STORE_PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer waits until its step is kept, at its beginning and its end.
pub(super) const KEEP_PATIENCE: Duration = Duration::from_secs(1);
/// Done once the store has a write, or has failed at it.
pub(crate) type Written = Shared<oneshot::Receiver<()>>;

/// Steps that are being kept at once.
const KEEPING_MAX: usize = 1024;

/// Runs of manager. Clones share them.
#[derive(Clone)]
pub struct EpisodeManager {
    pub(crate) inner: Arc<EpisodeManagerInner>,
    /// What those go by who tidy up.
    latest: Arc<ArcSwap<EpisodeManagerInner>>,
}

impl EpisodeManager {
    /// Episodes that are kept there. What is too old of them is forgotten from now on.
    pub fn open(
        tasks: &Tasks,
        store: Arc<dyn EpisodeStore>,
        metrics: Arc<Metrics>,
        settings: Settings,
    ) -> EpisodeManager {
        let inner = Arc::new(EpisodeManagerInner {
            tools: Arc::new(settings.tools.clone()),
            settings,
            store,
            metrics,
            turns: Arc::default(),
            wait_queues: Arc::default(),
            tasks: tasks.clone(),
            store_slots: Arc::new(Semaphore::new(KEEPING_MAX)),
        });
        let latest = Arc::new(ArcSwap::new(inner.clone()));
        tasks.spawn(upkeep::run(latest.clone(), tasks.clone()));
        EpisodeManager { inner, latest }
    }

    /// The same runs, held by other settings: steps that are under way go on by those they began with.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> EpisodeManager {
        let inner = Arc::new(EpisodeManagerInner {
            tools: Arc::new(settings.tools.clone()),
            settings,
            store: self.inner.store.clone(),
            metrics: self.inner.metrics.clone(),
            turns: self.inner.turns.clone(),
            wait_queues: self.inner.wait_queues.clone(),
            tasks: self.inner.tasks.clone(),
            store_slots: self.inner.store_slots.clone(),
        });
        self.latest.store(inner.clone());
        EpisodeManager { inner, latest: self.latest.clone() }
    }

    /// Asks the store, a bounded time.
    ///
    /// # Errors
    /// When it fails or does not answer.
    pub(crate) async fn with_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, EpisodesError>>,
    ) -> Result<T, EpisodesError> {
        let late = |_| EpisodesError::new("the store did not answer in time");
        timeout(STORE_PATIENCE, answer).await.map_err(late)?
    }

    /// Begins to keep a step, after its beginning. Nobody's answer fails for it.
    pub(super) fn store_step(&self, step: AnsweredStep, beginning: Option<Written>) -> Option<Written> {
        let store = self.inner.store.clone();
        let write = async move { store.record_step(&step).await };
        self.keep("a step is not stored", beginning, write)
    }

    /// The same for a step that begins, with its episode, where nothing is known of that yet.
    pub(super) fn store_beginning(&self, step: BrokenOffStep, is_first: bool) -> Option<Written> {
        let store = self.inner.store.clone();
        let write = async move {
            if is_first {
                store.open(&step.owner, &step.id, &EpisodeLimits::default(), step.at).await?;
            }
            store.record_broken_off(&step).await
        };
        self.keep("what was added to a step is not stored", None, write)
    }

    /// Begins to take that back.
    pub(super) fn take_back(
        &self,
        step: BrokenOffStep,
        is_first: bool,
        beginning: Written,
    ) -> Option<Written> {
        let store = self.inner.store.clone();
        let write = async move { store.take_back(&step, is_first).await };
        self.keep("what was added to a step that said nothing stays stored", Some(beginning), write)
    }

    /// Begins to keep a step that broke off.
    pub(super) fn store_broken_off(
        &self,
        step: BrokenOffStep,
        beginning: Option<Written>,
    ) -> Option<Written> {
        let store = self.inner.store.clone();
        let write = async move { store.record_broken_off(&step).await };
        self.keep("a step that broke off is not stored", beginning, write)
    }

    /// Writes something by itself, once an earlier write is done.
    fn keep(
        &self,
        lost: &'static str,
        earlier: Option<Written>,
        write: impl Future<Output = Result<(), EpisodesError>> + Send + 'static,
    ) -> Option<Written> {
        let Ok(permit) = self.inner.store_slots.clone().try_acquire_owned() else {
            self.report_lost(lost, &EpisodesError::new("too many wait for the store"));
            return None;
        };
        let (done, kept) = oneshot::channel();
        let manager = self.clone();
        self.inner.tasks.spawn(async move {
            if let Some(earlier) = earlier {
                let _ = earlier.await;
            }
            if let Err(error) = manager.with_timeout(write).await {
                manager.report_lost(lost, &error);
            }
            let _ = done.send(());
            drop(permit);
        });
        Some(kept.shared())
    }

    /// Does something that nobody waits for.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.tasks.spawn(work);
    }

    /// Says that the store did not do its work, and that an episode may be taken for another because of it.
    pub(crate) fn report_lost(&self, what: &str, error: &EpisodesError) {
        tracing::error!(error = error as &dyn std::error::Error, "{what}");
        self.inner.metrics.episodes.steps.with_label_values(&["lost"]).inc();
    }
}

/// Waits for a write, so long at most; where that takes longer, it goes on by itself.
pub(super) async fn wait_for(write: Option<Written>, most: Duration) {
    if let Some(write) = write {
        let _ = timeout(most, write).await;
    }
}

impl fmt::Debug for EpisodeManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpisodeManager").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
