//! From settings to a server that is ready to start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::Settings;
use crate::guardrail::Guardrails;
use crate::http::{self, BoundListener, Server, SwappableRouter};
use stint_storage::Database;
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::alerts::Alerts;
use super::certificates::{self, CertificateWatcher};
use super::config_snapshot::{ConfigSnapshot, Loaded, SwappableRouterSet, calibration};
use super::error::BuildError;
use super::ledger_monitor::LedgerMonitor;
use super::model_registry::{ModelRegistry, load_models};
use super::price_refresh::keep_prices;
use super::reload::{ConfigSource, Reloader, mark_applied};
use super::reload_handle::{ReloadHandle, ReloadRequests};
use super::shared_state::SharedState;
use super::{config_snapshot, directory, first_key, local_listener, recipe_ranges, refresh};

/// A server, built and bound, not yet accepting.
pub struct App {
    bound: Vec<(BoundListener, SwappableRouter)>,
    running: RunningServer,
    shared: Arc<SharedState>,
    reloader: Reloader,
    reload_requests: ReloadRequests,
}

/// A running server, for those who stop it or reload its configuration.
#[derive(Clone)]
pub struct RunningServer {
    /// Connections and requests.
    pub request_tasks: Tasks,
    /// The ledger's writer and what tells of its work, which end after them.
    pub ledger_tasks: Tasks,
    /// The listeners, which go on while requests end: health, metrics and the admin API are there until then.
    pub listener_tasks: Tasks,
    /// Asks for reloads.
    pub reloads: ReloadHandle,
    pub(super) current: Arc<ArcSwap<ConfigSnapshot>>,
    /// What the books are in.
    pub(super) database: Database,
}

/// What the first question may be: only the embedded model is sure to have learned arithmetic.
fn example_question(settings: &Settings) -> &'static str {
    let mut models = settings.backends.iter().flat_map(|backend| &backend.models);
    if models.all(|model| model.kind.is_none()) { "17*24+3=" } else { "Which day comes after Monday?" }
}

/// Opens the ledger, loads the models, binds the listeners. Later configurations come from `source`.
///
/// # Errors
/// When any of them cannot be had; the error says which and why.
pub async fn build(mut settings: Settings, source: ConfigSource) -> Result<App, BuildError> {
    let metrics = Arc::new(Metrics::new()?);
    refresh::show_build(&metrics);
    let (request_tasks, ledger_tasks) = (Tasks::default(), Tasks::default());
    let database = Database::open(&settings.storage).await?;
    let first_key = settings.first_key.as_deref().map(first_key::load_or_create).transpose();
    let keys = directory::open(&settings, first_key.map_err(BuildError::FirstKey)?, &database).await?;
    let alerts = Alerts::new(&ledger_tasks, settings.webhook.as_ref()).map_err(BuildError::Alerts)?;
    // A model that cannot be loaded ends the start before other replicas know this one.
    let registry = load_models(&settings, &ModelRegistry::default(), &metrics, &request_tasks)?;
    registry.measure_lag(&request_tasks, &metrics);
    registry.apply_engine_limits(&mut settings);
    let guardrails = Guardrails::new(&settings.guardrails, &metrics)?;
    let loaded = Loaded { registry, calibration: calibration(&settings)?, guardrails };
    let identities = certificates::load(&settings).map_err(BuildError::Certificate)?;
    let listeners = Listeners::bind(&settings)?;
    let monitor = LedgerMonitor::new(metrics.clone(), alerts, &keys);
    let opened =
        SharedState::open(&settings, &database, keys, metrics, monitor, &request_tasks, &ledger_tasks);
    // Boxed: it is most of what the start takes.
    let shared = Arc::new(Box::pin(opened).await?);
    let recipes =
        recipe_ranges::lines(&settings.catalog, &loaded.calibration, |demand| shared.learning.adjust(demand));
    recipes.iter().for_each(|line| tracing::info!("{line}"));
    let tokens = config_snapshot::tokens(&shared, &settings, None)?;
    let snapshot = ConfigSnapshot::first(&shared, settings, loaded, tokens);
    snapshot.registry.activate(snapshot.settings.resilience);
    let (reloads, reload_requests) = ReloadHandle::new();
    let routes = snapshot.routes(&shared, shared.directory.keys(), &reloads);
    let routers = SwappableRouterSet::new(&snapshot.settings.http, routes);
    identities.apply(&routers, &shared.metrics);
    mark_applied(&shared.metrics);
    let bound = listeners.with_routers(&routers);
    let current = Arc::new(ArcSwap::from_pointee(snapshot));
    let handle = reloads.clone();
    let reloader = Reloader { shared: shared.clone(), routers, handle, current: current.clone(), source };
    let listener_tasks = Tasks::default();
    let running = RunningServer { request_tasks, ledger_tasks, listener_tasks, reloads, current, database };
    Ok(App { bound, running, shared, reloader, reload_requests })
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

    /// Each with its router, the API's first.
    fn with_routers(self, routers: &SwappableRouterSet) -> Vec<(BoundListener, SwappableRouter)> {
        let mut bound = vec![(self.api, routers.api.clone())];
        bound.extend(self.metrics.zip(routers.metrics.clone()));
        bound.extend(self.admin.zip(routers.admin.clone()));
        bound
    }
}

impl App {
    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.bound.iter().map(|(bound, _)| bound.address()).collect()
    }

    /// The same as they are called, the API's first.
    pub fn urls(&self) -> Vec<String> {
        let settings = self.running.settings();
        let admin = settings.admin.as_ref();
        let of = |address: SocketAddr| {
            let is_admin = admin.is_some_and(|admin| admin.listen == address);
            let is_api = self.bound.first().is_some_and(|(api, _)| api.address() == address);
            let tls = match (is_api, is_admin) {
                (true, _) => settings.http.tls.as_ref(),
                (false, true) => admin.and_then(|admin| admin.tls.as_ref()),
                (false, false) => None,
            };
            local_listener::url(address, tls)
        };
        self.addresses().into_iter().map(of).collect()
    }

    /// The models that it serves, for a line of the log.
    pub fn model_names(&self) -> String {
        self.running.current.load().model_names()
    }

    /// True if no key is needed.
    pub fn is_open(&self) -> bool {
        self.shared.directory.keys().is_open()
    }

    /// A shell command that sends a question, where no key is needed.
    pub fn example_request(&self) -> Option<String> {
        let (api, _) = self.bound.first().filter(|_| self.is_open())?;
        let question = example_question(&self.running.settings());
        let body = format!(r#"{{"model":"auto","messages":[{{"role":"user","content":"{question}"}}]}}"#);
        let settings = self.running.settings();
        let tls = settings.http.tls.as_ref();
        let base = local_listener::url(api.address(), tls);
        // Its certificate is hardly ever for this address.
        let unchecked = if tls.is_some() { "-k " } else { "" };
        let url = format!("{unchecked}{base}/v1/chat/completions");
        Some(format!("curl {url} -H 'content-type: application/json' -d '{body}'"))
    }

    /// Starts accepting.
    pub fn start(self) -> RunningServer {
        let (running, metrics) = (self.running, &self.shared.metrics);
        let http = running.current.load().settings.http.clone();
        // Health and metrics are seen there until the end. The API's listener closes at the beginning of the end then: proxies pass what
        // is refused a connection to another gateway by themselves.
        let is_seen_elsewhere = self.reloader.routers.metrics.is_some();
        for (place, (bound, router)) in self.bound.into_iter().enumerate() {
            let server = Server::new(http.clone(), metrics.clone(), running.request_tasks.clone());
            let closes_first = place == 0 && is_seen_elsewhere;
            let until_the_end = |server: Server| server.accepting_until(running.listener_tasks.clone());
            let server = if closes_first { server } else { until_the_end(server) };
            running.listener_tasks.spawn(server.serve_swappable(bound, router));
        }
        let certificates = CertificateWatcher {
            current: running.current.clone(),
            routers: self.reloader.routers.clone(),
            metrics: metrics.clone(),
        };
        running.request_tasks.spawn(certificates.run(running.request_tasks.stopping()));
        running.ledger_tasks.spawn(running.database.clone().run_checkpoints(running.ledger_tasks.stopping()));
        running.request_tasks.spawn(self.reloader.run(self.reload_requests));
        let tasks = running.request_tasks.clone();
        let prices = keep_prices(running.current.clone(), running.reloads.clone(), tasks);
        running.request_tasks.spawn(prices);
        running
    }
}

impl RunningServer {
    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.current.load().settings.clone()
    }

    /// Stops the engines, those of earlier configurations too. Nothing may run on them any more.
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
        f.debug_struct("RunningServer").field("request_tasks", &self.request_tasks).finish_non_exhaustive()
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
