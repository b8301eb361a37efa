//! Puts another configuration in force without dropping a request.
//!
//! The state that is shared by all configurations stays: listeners, ledger, keys, what is learned and stored. All that a
//! configuration says of requests is one snapshot. The next snapshot is built beside the one in force and checked whole. Then one
//! pointer store at each listener puts it in force, so that no request sees some of both. Running requests finish on the snapshot
//! that they began with, at its prices.
//!
//! A model whose upstreams are described as before keeps its connections and what is known of its targets. An engine keeps its
//! weights. A change of something that is fixed while a process lives refuses the whole configuration and names it. After any
//! error the snapshot in force stays.

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
use tokio::time::Instant;

use crate::config::{ConfigErrors, Settings};
use crate::guardrail::Guardrails;
use crate::http::admin::ReloadOutcome;
use crate::oidc::TokenVerifier;
use stint_types::catalog::Demand;
use stint_types::metrics::Metrics;
use stint_types::tenant::{DeclarationNumber, DeclaredTenants, Directory};
use stint_types::units::Timestamp;

use super::alerts::Alerts;
use super::certificates::{self, ListenerIdentities};
use super::config_snapshot::{ConfigSnapshot, Loaded, SwappableRouterSet, calibration};
use super::error::{BuildError, error_chain};
use super::ledger_monitor::zero_warning_counters;
use super::model_registry::load_models;
use super::reload_handle::{ReloadHandle, ReloadRequests};
use super::shared_state::SharedState;
use super::{config_snapshot, directory, first_key, recipe_ranges};

/// Where configurations come from, and what is called with those that were applied.
pub struct ConfigSource {
    /// Reads the configuration, as `stint check` does. It may block.
    pub load: Arc<dyn Fn() -> Result<Settings, ConfigErrors> + Send + Sync>,
    /// Called with every configuration that comes in force after the first.
    pub on_applied: Box<dyn Fn(&Settings) + Send + Sync>,
}

/// Puts one configuration after the other in force, in a task of its own.
pub(super) struct Reloader {
    pub(super) shared: Arc<SharedState>,
    pub(super) routers: SwappableRouterSet,
    pub(super) handle: ReloadHandle,
    /// The snapshot in force.
    pub(super) current: Arc<ArcSwap<ConfigSnapshot>>,
    pub(super) source: ConfigSource,
}

/// A configuration that can be put in force: nothing that is left to do may fail.
struct PreparedConfig {
    settings: Settings,
    loaded: Loaded,
    tokens: Option<TokenVerifier>,
    declared: DeclaredTenants,
    alerts: Alerts,
    identities: ListenerIdentities,
    /// What its recipes do, to be said once they are in force.
    recipes: Vec<String>,
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
    /// Reloads on request until shutdown begins. One reload serves all requests that came before it began.
    pub(super) async fn run(self, mut requests: ReloadRequests) {
        let stopping = self.shared.request_tasks.stopping();
        tokio::pin!(stopping);
        loop {
            let reply = tokio::select! {
                biased;
                () = &mut stopping => return,
                reply = requests.recv() => reply,
            };
            let Some(reply) = reply else { return };
            let waiting = std::iter::from_fn(|| requests.try_recv().ok());
            let replies: Vec<_> = std::iter::once(reply).chain(waiting).collect();
            let began = Instant::now();
            let prepared = tokio::select! {
                biased;
                () = &mut stopping => return,
                prepared = self.prepare() => prepared,
            };
            let outcome = match prepared {
                Ok(prepared) => {
                    // A mistake of ours here must not end reloading for good, and in silence.
                    let applied = AssertUnwindSafe(self.apply(prepared, began)).catch_unwind().await;
                    applied
                        .map_or_else(|_| ReloadOutcome::Refused(self.report_panic()), ReloadOutcome::Applied)
                }
                Err(error) => ReloadOutcome::Refused(self.reject(&error)),
            };
            for reply in replies {
                // The one who asked may have gone.
                let _ = reply.send(outcome.clone());
            }
        }
    }

    /// Reads, checks and builds, on a thread that may block: files are read, and weights loaded.
    async fn prepare(&self) -> Result<PreparedConfig, ReloadError> {
        let (shared, before) = (self.shared.clone(), self.current.load_full());
        let load = self.source.load.clone();
        let prepared = tokio::task::spawn_blocking(move || PreparedConfig::check(load()?, &before, &shared));
        // A mistake of ours in reading must not end a server that works.
        prepared.await.unwrap_or(Err(ReloadError::Panicked))
    }

    /// Puts it in force; gives back what changed.
    async fn apply(&self, prepared: PreparedConfig, began: Instant) -> Vec<String> {
        let PreparedConfig { settings, loaded, tokens, declared, alerts, identities, recipes } = prepared;
        let (shared, before) = (&self.shared, self.current.load_full());
        let changes = changes::changes(&before.settings, &settings);
        let next = Arc::new(before.next(shared, settings, loaded, tokens));
        let switch = |keys| {
            self.routers.replace_all(&next.settings.http, next.routes(shared, keys, &self.handle));
            self.current.store(next.clone());
        };
        next.registry.activate(next.settings.resilience);
        let gone = shared.directory.replace_declared(declared, next.settings.keys_required, switch).await;
        if let Some(number) = gone {
            self.withdraw_later(number, &before.settings);
        }
        identities.apply(&self.routers, &shared.metrics);
        let directory = shared.directory.snapshot();
        zero_warning_counters(&shared.metrics, &directory.terms());
        shared.ledger_monitor.reconfigure(alerts, &directory);
        before.registry.remove_stale_series(&next.registry, &shared.metrics);
        mark_applied(&shared.metrics);
        (self.source.on_applied)(&next.settings);
        next.settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        recipes.iter().for_each(|line| tracing::info!("{line}"));
        let (changed, took) = (changes.join("; "), began.elapsed());
        tracing::info!(changed, ?took, models = %next.model_names(), "reloaded: the configuration is in force");
        changes
    }

    /// Lets requests that began by the configuration before reserve by it: their bodies may still be on their way, and money may be
    /// waited for. Then the accounts that are gone may spend nothing any more.
    fn withdraw_later(&self, number: DeclarationNumber, before: &Settings) {
        let (tasks, directory) = (&self.shared.request_tasks, self.shared.directory.clone());
        let (stopping, time) = (tasks.stopping(), before.http.body_total + before.gateway.wait_max);
        tasks.spawn(async move {
            tokio::select! {
                () = stopping => {}
                () = tokio::time::sleep(time) => directory.withdraw_gone(number).await,
            }
        });
    }

    /// After a panic nobody knows how much of it is in force.
    fn report_panic(&self) -> Vec<String> {
        self.shared.metrics.config.state.set(0);
        let mistake = "putting it in force ended in a panic, which the log has above: some of it may be in force and some not; \
                       reload again or restart, and please report it";
        tracing::error!("{mistake}");
        vec![mistake.to_owned()]
    }

    /// Logs why all stays as it is.
    fn reject(&self, error: &ReloadError) -> Vec<String> {
        let mistakes = error.messages();
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
        shared: &SharedState,
    ) -> Result<PreparedConfig, ReloadError> {
        immutable::check(&before.settings, &settings)?;
        let is_known = before.settings.first_key == settings.first_key;
        let find = if is_known { first_key::load_existing } else { first_key::load_or_create };
        let first = settings.first_key.as_deref().map(find).transpose();
        let declared = directory::declared(&settings, first.map_err(BuildError::FirstKey)?);
        Directory::check(&declared).map_err(BuildError::Keys)?;
        let alerts = if before.settings.webhook == settings.webhook {
            shared.ledger_monitor.alerts()
        } else {
            Alerts::new(&shared.ledger_tasks, settings.webhook.as_ref()).map_err(BuildError::Alerts)?
        };
        let identities = certificates::load(&settings).map_err(BuildError::Certificate)?;
        let calibration = calibration(&settings)?;
        // Last, since it may take long.
        let registry = load_models(&settings, &before.registry, &shared.metrics, &shared.request_tasks)?;
        registry.apply_engine_limits(&mut settings);
        let guardrails = Guardrails::new(&settings.guardrails, &shared.metrics).map_err(BuildError::from)?;
        let tokens = config_snapshot::tokens(shared, &settings, before.tokens.as_ref())?;
        let learned = |demand: &mut Demand| shared.learning.adjust(demand);
        let recipes = recipe_ranges::lines(&settings.catalog, &calibration, learned);
        Ok(PreparedConfig {
            settings,
            loaded: Loaded { registry, calibration, guardrails },
            tokens,
            declared,
            alerts,
            identities,
            recipes,
        })
    }
}

impl ReloadError {
    /// Every reason, each with its line or with its causes.
    fn messages(&self) -> Vec<String> {
        if let ReloadError::Mistakes(mistakes) = self {
            let source = &mistakes.source;
            return mistakes.errors.iter().map(|mistake| format!("{source}: {mistake}")).collect();
        }
        vec![error_chain(self)]
    }
}

/// Shows that what was read last is in force, since now.
pub(super) fn mark_applied(metrics: &Metrics) {
    metrics.config.state.set(1);
    let now = Duration::from_millis(u64::try_from(Timestamp::now().0).unwrap_or_default());
    metrics.config.loaded.set(now.as_secs_f64());
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigSource(…)")
    }
}
