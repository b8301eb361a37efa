//! Another configuration in place of the one in force, without dropping a request.
//!
//! What there is once in a process, its *plant*, stays: listeners, books, keys, what is learned and remembered. All that a
//! configuration says of requests is one *generation*, built beside the one in force and checked whole; then it takes its
//! place with one store of a pointer at each door, so that no request sees some of both. Requests that run finish on the
//! generation that they began with, at its prices.
//!
//! What the next generation would make anew just as it is it takes over: a model whose upstreams are described as before keeps
//! its connections and what is known of its targets, however they are treated now, and an engine keeps its weights. What cannot change while a process
//! lives refuses the whole, by name. Whatever is wrong, the generation in force stays.

mod changes;
mod immutable;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::config::{ConfigErrors, Settings};
use crate::http::admin::{ReloadFn, ReloadOutcome};
use crate::tenant::{DeclaredTenants, Directory};
use crate::units::Timestamp;

use super::alerts::Alerts;
use super::build::BuildError;
use super::config_snapshot::{ConfigSnapshot, Loaded, SwappableRouterSet, calibration};
use super::shared_state::SharedState;
use super::{directory, first_key, models, refresh};

/// Those who may wait for the next reading; whoever comes then is served by it too, since it has not begun.
const WAITING_MAX: usize = 16;

/// Where configurations come from, and who hears of those that are taken.
pub struct ConfigSource {
    /// Reads the configuration, as `stint check` does. It may block.
    pub load: Arc<dyn Fn() -> Result<Settings, ConfigErrors> + Send + Sync>,
    /// Told of every configuration that comes in force after the first.
    pub on_applied: Box<dyn Fn(&Settings) + Send + Sync>,
}

/// The way to the one task that puts configurations in force. Clones share it.
#[derive(Debug, Clone)]
pub struct ReloadHandle(mpsc::Sender<oneshot::Sender<ReloadOutcome>>);

impl ReloadHandle {
    /// The way, and its other end.
    pub(super) fn new() -> (ReloadHandle, ReloadRequests) {
        let (ask, asked) = mpsc::channel(WAITING_MAX);
        (ReloadHandle(ask), asked)
    }

    /// Has the configuration read anew and put in force, behind those who asked before. Says what came of it; nothing where
    /// the server ends.
    pub async fn reload(&self) -> Option<ReloadOutcome> {
        let (tell, told) = oneshot::channel();
        self.0.send(tell).await.ok()?;
        told.await.ok()
    }

    /// The same for somebody who does not wait.
    pub fn request_reload(&self) {
        // Where there is no room, those who wait will read what there is now.
        if let Err(TrySendError::Closed(_)) = self.0.try_send(oneshot::channel().0) {
            tracing::error!(
                "not reloaded: nobody reads configurations any more; restart, and please report it"
            );
        }
    }

    /// The same for the admin API.
    pub(super) fn as_callback(&self) -> ReloadFn {
        let reloads = self.clone();
        Box::new(move || {
            let reloads = reloads.clone();
            async move { reloads.reload().await }.boxed()
        })
    }
}

/// Those who want the configuration read anew.
pub(super) type ReloadRequests = mpsc::Receiver<oneshot::Sender<ReloadOutcome>>;

/// Puts one configuration after the other in force.
pub(super) struct Reloader {
    pub(super) shared: Arc<SharedState>,
    pub(super) routers: SwappableRouterSet,
    pub(super) handle: ReloadHandle,
    /// The generation in force.
    pub(super) current: Arc<ArcSwap<ConfigSnapshot>>,
    pub(super) source: ConfigSource,
}

/// A configuration that can be put in force: nothing that is left to do may fail.
struct PreparedConfig {
    settings: Settings,
    loaded: Loaded,
    declared: DeclaredTenants,
    alerts: Alerts,
}

/// Why a configuration is not put in force.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Mistakes(#[from] ConfigErrors),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("reading it ended in a panic, which the log has above; please report it")]
    Panicked,
}

impl Reloader {
    /// Serves those who ask, all that have asked by then at once, until shutdown begins.
    pub(super) async fn run(self, mut asked: ReloadRequests) {
        let stopping = self.shared.request_tasks.stopping();
        tokio::pin!(stopping);
        loop {
            let teller = tokio::select! {
                biased;
                () = &mut stopping => return,
                teller = asked.recv() => teller,
            };
            let Some(teller) = teller else { return };
            // Nothing was read yet for those who have asked meanwhile either: one reading serves them all.
            let tellers: Vec<_> =
                std::iter::once(teller).chain(std::iter::from_fn(|| asked.try_recv().ok())).collect();
            let began = Instant::now();
            let ready = tokio::select! {
                biased;
                () = &mut stopping => return,
                ready = self.prepare() => ready,
            };
            let reloaded = match ready {
                Ok(ready) => {
                    // A mistake of ours here must not end reloading for good, and in silence.
                    let put = AssertUnwindSafe(self.apply(ready, began)).catch_unwind().await;
                    put.map_or_else(|_| ReloadOutcome::Refused(self.report_panic()), ReloadOutcome::Applied)
                }
                Err(refused) => ReloadOutcome::Refused(self.reject(&refused)),
            };
            for teller in tellers {
                // Whoever asked may have gone.
                let _ = teller.send(reloaded.clone());
            }
        }
    }

    /// Reads, checks and builds, on a thread that may block: files are read, and weights loaded.
    async fn prepare(&self) -> Result<PreparedConfig, ReloadError> {
        let (plant, before, load) = (self.shared.clone(), self.current.load_full(), self.source.load.clone());
        let prepared = tokio::task::spawn_blocking(move || PreparedConfig::check(load()?, &before, &plant));
        // A mistake of ours in reading must not end a server that works.
        prepared.await.unwrap_or(Err(ReloadError::Panicked))
    }

    /// Puts it in force; says what is other than before.
    async fn apply(&self, ready: PreparedConfig, began: Instant) -> Vec<String> {
        let PreparedConfig { settings, loaded: means, declared, alerts } = ready;
        let (plant, before) = (&self.shared, self.current.load_full());
        let changes = changes::changes(&before.settings, &settings);
        let next = Arc::new(before.next(plant, settings, means));
        let (doors, reloads) = (&self.routers, &self.handle);
        let switch = |keys| {
            doors.replace_all(&next.settings.http, next.routes(plant, keys, reloads));
            self.current.store(next.clone());
        };
        next.registry.activate(next.settings.resilience);
        plant.directory.replace_declared(declared, next.settings.keys_required, switch).await;
        let book = plant.directory.snapshot();
        refresh::zero_warning_counters(&plant.metrics, &book.terms());
        plant.ledger_monitor.reconfigure(alerts, &book);
        before.registry.remove_stale_series(&next.registry);
        mark_applied(plant);
        (self.source.on_applied)(&next.settings);
        next.settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let (changed, took) = (changes.join("; "), began.elapsed());
        tracing::info!(changed, ?took, models = %next.model_names(), "reloaded: the configuration is in force");
        changes
    }

    /// Nobody knows how far it came.
    fn report_panic(&self) -> Vec<String> {
        self.shared.metrics.config.state.set(0);
        let mistake = "putting it in force ended in a panic, which the log has above: some of it may be in force and some not; \
                       reload again or restart, and please report it";
        tracing::error!("{mistake}");
        vec![mistake.to_owned()]
    }

    /// Leaves all as it is; says why.
    fn reject(&self, refused: &ReloadError) -> Vec<String> {
        let mistakes = refused.messages();
        mistakes.iter().for_each(|mistake| tracing::error!("{mistake}"));
        let count = mistakes.len();
        tracing::error!(mistakes = count, "not reloaded: the configuration before stays in force");
        self.shared.metrics.config.state.set(0);
        mistakes
    }
}

impl PreparedConfig {
    fn check(
        mut settings: Settings,
        before: &ConfigSnapshot,
        plant: &SharedState,
    ) -> Result<PreparedConfig, ReloadError> {
        immutable::check(&before.settings, &settings)?;
        let is_known = before.settings.first_key == settings.first_key;
        let find = if is_known { first_key::load_existing } else { first_key::load_or_create };
        let first = settings.first_key.as_deref().map(find).transpose();
        let declared = directory::declared(&settings, first.map_err(BuildError::FirstKey)?);
        Directory::check(&declared).map_err(BuildError::Keys)?;
        let alerts = match before.settings.webhook == settings.webhook {
            true => plant.ledger_monitor.alerts(),
            false => {
                Alerts::new(&plant.request_tasks, settings.webhook.as_ref()).map_err(BuildError::Alerts)?
            }
        };
        let calibration = calibration(&settings)?;
        // Last, since it may take long.
        let served = models::load_models(&settings, &before.registry, &plant.metrics, &plant.request_tasks)?;
        served.apply_engine_limits(&mut settings);
        Ok(PreparedConfig { settings, loaded: Loaded { registry: served, calibration }, declared, alerts })
    }
}

impl ReloadError {
    /// Every reason, each with where it stands or with its causes.
    fn messages(&self) -> Vec<String> {
        if let ReloadError::Mistakes(mistakes) = self {
            let source = &mistakes.source;
            return mistakes.errors.iter().map(|mistake| format!("{source}: {mistake}")).collect();
        }
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        vec![text]
    }
}

/// Shows that what was read last is in force, since now.
pub(super) fn mark_applied(plant: &SharedState) {
    plant.metrics.config.state.set(1);
    let now = Duration::from_millis(u64::try_from(Timestamp::now().0).unwrap_or_default());
    plant.metrics.config.loaded.set(now.as_secs_f64());
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Origin")
    }
}
