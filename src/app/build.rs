//! From settings to a server that is ready to start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::Settings;
use crate::estimate;
use crate::http::{self, BoundListener, Server, SwappableRouter};
use crate::idempotency::IdempotencyStoreError;
use crate::ledger::LedgerError;
use crate::metrics::{Metrics, MetricsError};
use crate::storage::{Database, StorageError};
use crate::tasks::Tasks;
use crate::tenant::KeyChangeError;

use super::alerts::Alerts;
use super::config_snapshot::{ConfigSnapshot, Loaded, SwappableRouterSet, calibration};
use super::models::{self, ModelError, ModelRegistry};
use super::reload::{self, ConfigSource, ReloadHandle, Reloader};
use super::shared_state::SharedState;
use super::{directory, first_key};

/// Why a server cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The first key cannot be had.
    #[error("no first key")]
    FirstKey(#[source] io::Error),
    /// The keys contradict each other, or cannot be read.
    #[error("the keys cannot be used")]
    Keys(#[from] KeyChangeError),
    /// The series contradict each other.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The journal cannot be opened.
    #[error("the ledger's journal cannot be opened")]
    Storage(#[from] StorageError),
    /// What idempotency keys stand for cannot be read.
    #[error("the records of idempotency keys cannot be opened")]
    Idempotency(#[from] IdempotencyStoreError),
    /// The books cannot be opened.
    #[error("the ledger cannot be opened")]
    Ledger(#[from] LedgerError),
    /// A model cannot be served.
    #[error("the model {0} cannot be served")]
    Model(Arc<str>, #[source] ModelError),
    /// The shipped calibration cannot be read.
    #[error("the shipped calibration cannot be read")]
    Calibration(#[source] estimate::ShippedError),
    /// The signals that end it cannot be received.
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
    /// The webhook's client cannot be made.
    #[error("alerts cannot be sent")]
    Alerts(#[source] reqwest::Error),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] io::Error),
}

/// A server, built and bound, not yet accepting.
pub struct App {
    bound: Vec<(BoundListener, SwappableRouter)>,
    running: RunningServer,
    shared: Arc<SharedState>,
    reloader: Reloader,
    reload_requests: reload::ReloadRequests,
}

/// A server's work, for those who stop it or change what it goes by.
#[derive(Clone)]
pub struct RunningServer {
    /// Connections and flights.
    pub request_tasks: Tasks,
    /// The ledger's writer, which outlives them.
    pub ledger_tasks: Tasks,
    /// The way to another configuration.
    pub reloads: ReloadHandle,
    pub(super) current: Arc<ArcSwap<ConfigSnapshot>>,
}

/// What the first question may be: only the embedded model is sure to have learned arithmetic.
fn example_question(settings: &Settings) -> &'static str {
    let mut models = settings.backends.iter().flat_map(|backend| &backend.models);
    if models.all(|model| model.kind.is_none()) { "17*24+3=" } else { "Which day comes after Monday?" }
}

/// Opens the ledger, loads the models, binds the listeners. Later configurations come from `origin`.
///
/// # Errors
/// When any of them cannot be had; the error says which and why.
pub async fn build(mut settings: Settings, origin: ConfigSource) -> Result<App, BuildError> {
    let metrics = Arc::new(Metrics::new()?);
    let (work, ledger_work) = (Tasks::default(), Tasks::default());
    let database = Database::open(&settings.storage).await?;
    let first = settings.first_key.as_deref().map(first_key::load_or_create).transpose();
    let keys = directory::open(&settings, first.map_err(BuildError::FirstKey)?, &database).await?;
    let alerts = Alerts::new(&work, settings.webhook.as_ref()).map_err(BuildError::Alerts)?;
    // Whoever cannot be had ends the start before this replica is known to others.
    let served = models::load_models(&settings, &ModelRegistry::default(), &metrics, &work)?;
    served.measure_lag(&work, &metrics);
    served.apply_engine_limits(&mut settings);
    let means = Loaded { registry: served, calibration: calibration(&settings)? };
    let listeners = Listeners::bind(&settings)?;
    let tasks = (&work, &ledger_work);
    let plant = Arc::new(SharedState::open(&settings, &database, keys, (metrics, alerts), tasks).await?);
    let generation = ConfigSnapshot::first(&plant, settings, means);
    generation.registry.activate(generation.settings.resilience);
    let (reloads, asked) = ReloadHandle::new();
    let routes = generation.routes(&plant, plant.directory.keys(), &reloads);
    let doors = SwappableRouterSet::new(&generation.settings.http, routes);
    reload::mark_applied(&plant);
    let bound = listeners.with_routers(&doors);
    let now = Arc::new(ArcSwap::from_pointee(generation));
    let reloader = Reloader {
        shared: plant.clone(),
        routers: doors,
        handle: reloads.clone(),
        current: now.clone(),
        source: origin,
    };
    let running = RunningServer { request_tasks: work, ledger_tasks: ledger_work, reloads, current: now };
    Ok(App { bound, running, shared: plant, reloader, reload_requests: asked })
}

/// All that is listened on.
struct Listeners {
    api: BoundListener,
    metrics: Option<BoundListener>,
    admin: Option<BoundListener>,
}

impl Listeners {
    fn bind(settings: &Settings) -> io::Result<Listeners> {
        let api = http::bind(settings.http.listen)?;
        let metrics = settings.http.metrics_listen.map(http::bind).transpose()?;
        let admin = settings.admin.as_ref().map(|access| http::bind(access.listen)).transpose()?;
        Ok(Listeners { api, metrics, admin })
    }

    /// Each with its door, the API's first.
    fn with_routers(self, doors: &SwappableRouterSet) -> Vec<(BoundListener, SwappableRouter)> {
        let mut bound = vec![(self.api, doors.api.clone())];
        bound.extend(self.metrics.zip(doors.metrics.clone()));
        bound.extend(self.admin.zip(doors.admin.clone()));
        bound
    }
}

impl App {
    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.bound.iter().map(|(bound, _)| bound.address()).collect()
    }

    /// The models that it serves, for a line of the log.
    pub fn model_names(&self) -> String {
        self.running.current.load().model_names()
    }

    /// True where everybody may ask.
    pub fn is_open(&self) -> bool {
        self.shared.directory.keys().is_open()
    }

    /// A command that asks it something, where it needs no key.
    pub fn example_request(&self) -> Option<String> {
        let (api, _) = self.bound.first().filter(|_| self.is_open())?;
        let question = example_question(&self.running.settings());
        let body = format!(r#"{{"model":"auto","messages":[{{"role":"user","content":"{question}"}}]}}"#);
        let url = format!("http://{}/v1/chat/completions", api.address());
        Some(format!("curl {url} -H 'content-type: application/json' -d '{body}'"))
    }

    /// Starts accepting.
    pub fn start(self) -> RunningServer {
        let (running, metrics) = (self.running, &self.shared.metrics);
        let http = running.current.load().settings.http.clone();
        for (bound, door) in self.bound {
            let server = Server::new(http.clone(), metrics.clone(), running.request_tasks.clone());
            running.request_tasks.spawn(server.serve_swappable(bound, door));
        }
        running.request_tasks.spawn(self.reloader.run(self.reload_requests));
        running
    }
}

impl RunningServer {
    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.current.load().settings.clone()
    }

    /// Stops the engines, those of earlier configurations too; nothing runs on them any more.
    pub fn stop_engines(&self) {
        self.current.load().registry.stop_engines();
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer").field("work", &self.request_tasks).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_embedded_model_is_asked_for_arithmetic() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("stint.toml");
        let environment = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
        let asked = |text: &str| {
            std::fs::write(&file, text).unwrap();
            example_question(&crate::config::load(Some(&file), &environment).unwrap())
        };
        assert_eq!(asked(""), "17*24+3=");
        let upstream = "[[backend]]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\nmodels = ['m']\n";
        assert_eq!(asked(upstream), "Which day comes after Monday?");
    }
}
