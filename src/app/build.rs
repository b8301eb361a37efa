//! From settings to a server that is ready to start.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use crate::config::Settings;
use crate::gateway::{Gateway, Parts};
use crate::http::{self, Bound, Server, Service};
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::{Metrics, MetricsError};
use crate::storage::{Database, StorageError};
use crate::tasks::Tasks;
use crate::tenant::{Keys, KeysError, Tenant, Terms};
use crate::units::{AccountId, Timestamp};
use crate::{estimate, ledger};

use super::models::{self, ModelError, Served, Watched};
use super::{first_key, refresh};

/// How often reservations are looked for whose flights do not come back.
const SWEEP: Duration = Duration::from_secs(30);

/// Why a server cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The first key cannot be had.
    #[error("no first key")]
    FirstKey(#[source] io::Error),
    /// The keys contradict each other.
    #[error("the keys of the configuration cannot be used")]
    Keys(#[from] KeysError),
    /// The series contradict each other.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The journal cannot be opened.
    #[error("the ledger's journal cannot be opened")]
    Storage(#[from] StorageError),
    /// The books cannot be opened.
    #[error("the ledger cannot be opened")]
    Ledger(#[from] LedgerError),
    /// A model cannot be served.
    #[error("the model {0} cannot be served")]
    Model(Arc<str>, #[source] ModelError),
    /// The shipped calibration cannot be read.
    #[error("the shipped calibration cannot be read")]
    Calibration(#[source] toml::de::Error),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] io::Error),
}

/// A server, built and bound, not yet accepting.
#[derive(Debug)]
pub struct App {
    http: http::Settings,
    service: Arc<Service>,
    bound: Vec<(Bound, Router)>,
    running: Running,
}

/// A server's work, for those who stop it.
#[derive(Debug, Clone)]
pub struct Running {
    /// Connections and flights.
    pub work: Tasks,
    /// The ledger's writer, which outlives them.
    pub ledger_work: Tasks,
    engines: Arc<Vec<Watched>>,
}

/// Opens the ledger, loads the models, binds the listeners.
///
/// # Errors
/// When any of them cannot be had; the error says which and why.
pub async fn build(settings: Settings) -> Result<App, BuildError> {
    let metrics = Arc::new(Metrics::new()?);
    for model in settings.catalog.models.keys() {
        // A series that begins when it first rises hides that rise from an alert.
        metrics.money.overrun.with_label_values(&[model]);
    }
    let (work, ledger_work) = (Tasks::default(), Tasks::default());
    let keys = keys(&settings)?;
    let ledger = open_ledger(&settings, &keys, &metrics, &ledger_work).await?;
    sweep(&work, &ledger);
    let Served { backends, engines } = models::serve(&settings)?;
    let engines = Arc::new(engines);
    let gateway = Gateway::new(Parts {
        settings: settings.gateway.clone(),
        tasks: work.clone(),
        metrics: metrics.clone(),
        ledger: ledger.clone(),
        catalog: settings.catalog.clone(),
        backends,
        calibration: estimate::shipped().map_err(BuildError::Calibration)?,
    });
    let look = (metrics.clone(), keys.tenants().cloned().collect::<Vec<_>>(), engines.clone());
    let refresh = move || refresh::refresh(&look.0, &ledger, &look.1, &look.2);
    let http = settings.http;
    let service =
        Arc::new(Service { settings: http.clone(), keys, gateway, metrics, refresh: Box::new(refresh) });
    let mut bound = vec![(http::bind(http.listen)?, http::api(&service))];
    if let Some(address) = http.metrics_listen {
        bound.push((http::bind(address)?, http::monitoring(&service)));
    }
    Ok(App { http, service, bound, running: Running { work, ledger_work, engines } })
}

/// The declared tenants, and the first one's where one was asked for.
fn keys(settings: &Settings) -> Result<Keys, BuildError> {
    let mut tenants: Vec<Tenant> = settings.tenants.clone();
    if let Some(path) = &settings.first_key {
        tenants.push(first_key::tenant(path).map_err(BuildError::FirstKey)?);
    }
    Ok(Keys::new(tenants)?)
}

async fn open_ledger(
    settings: &Settings,
    keys: &Keys,
    metrics: &Arc<Metrics>,
    work: &Tasks,
) -> Result<Ledger, BuildError> {
    let database = Database::open(&settings.storage).await?;
    let observer: Arc<dyn ledger::Observer> = Arc::new(refresh::Watcher(metrics.clone()));
    let (pace, terms) = (settings.ledger, terms(settings, keys));
    Ok(match database.bank() {
        Some(bank) => Ledger::share(work, bank, observer, pace, &terms).await?,
        None => Ledger::open(work, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
}

/// The declared terms; a tenant without any spends without limits.
fn terms(settings: &Settings, keys: &Keys) -> Vec<Terms> {
    let declared = |account: &AccountId| settings.terms.iter().any(|terms| terms.account == *account);
    let others = keys.tenants().map(|tenant| &tenant.account).filter(|account| !declared(account));
    settings.terms.iter().cloned().chain(others.cloned().map(Terms::unlimited)).collect()
}

/// Resolves reservations that nobody comes back for.
fn sweep(work: &Tasks, ledger: &Ledger) {
    let (ledger, stopping) = (ledger.clone(), work.stopping());
    work.spawn(async move {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(SWEEP) => {}
            }
            let expired = ledger.expire(ledger.now());
            if expired > 0 {
                tracing::error!(expired, "reservations expired: their flights did not come back");
            }
        }
    });
}

impl App {
    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.bound.iter().map(|(bound, _)| bound.address()).collect()
    }

    /// The models that it serves, for a line of the log.
    pub fn models(&self) -> String {
        let models = self.service.gateway.catalog().models.keys();
        models.map(|name| &**name).collect::<Vec<_>>().join(", ")
    }

    /// True where everybody may ask.
    pub fn is_open(&self) -> bool {
        self.service.keys.is_open()
    }

    /// A command that asks it something, where it needs no key.
    pub fn invitation(&self) -> Option<String> {
        let (api, _) = self.bound.first().filter(|_| self.is_open())?;
        let body = r#"{"model":"auto","messages":[{"role":"user","content":"17*24+3="}]}"#;
        let url = format!("http://{}/v1/chat/completions", api.address());
        Some(format!("curl {url} -H 'content-type: application/json' -d '{body}'"))
    }

    /// Starts accepting.
    pub fn start(self) -> Running {
        for (bound, router) in self.bound {
            let server =
                Server::new(self.http.clone(), self.service.metrics.clone(), self.running.work.clone());
            self.running.work.spawn(server.serve(bound, router));
        }
        self.running
    }
}

impl Running {
    /// Stops the engines; nothing runs on them any more.
    pub fn stop_engines(&self) {
        for engine in self.engines.iter() {
            engine.stop();
        }
    }
}

/// Backends by the model that they serve.
pub(super) type Backends = BTreeMap<Arc<str>, Arc<dyn crate::backend::Backend>>;
