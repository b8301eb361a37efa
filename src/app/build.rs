//! From settings to a server that is ready to start.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use crate::agent::stored::ResponseKeeper;
use crate::backend::fleet::Fleet;
use crate::catalog::Calibration;
use crate::config::Settings;
use crate::gateway::{Agents, Gateway, Learning, Parts};
use crate::http::{self, Bound, Server, Service};
use crate::idempotency::{AnswersError, Idempotency};
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::{Metrics, MetricsError};
use crate::storage::{Database, StorageError};
use crate::tasks::Tasks;
use crate::tenant::{Directory, KeyRefused, Tenant};
use crate::units::{AccountId, Timestamp};
use crate::{estimate, ledger};

use super::alerts::Alerts;
use super::models::{self, ModelError, Served, Watched};
use super::{directory, first_key, refresh, seal};

/// How often reservations are looked for whose flights do not come back.
const SWEEP: Duration = Duration::from_secs(30);

/// Why a server cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The first key cannot be had.
    #[error("no first key")]
    FirstKey(#[source] io::Error),
    /// The keys contradict each other, or cannot be read.
    #[error("the keys cannot be used")]
    Keys(#[from] KeyRefused),
    /// The series contradict each other.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The journal cannot be opened.
    #[error("the ledger's journal cannot be opened")]
    Storage(#[from] StorageError),
    /// What idempotency keys stand for cannot be read.
    #[error("the records of idempotency keys cannot be opened")]
    Idempotency(#[from] AnswersError),
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
    let (work, ledger_work) = (Tasks::default(), Tasks::default());
    let database = Database::open(&settings.storage).await?;
    let first = settings.first_key.as_deref().map(first_key::tenant).transpose();
    let keys = directory::open(&settings, first.map_err(BuildError::FirstKey)?, &database).await?;
    refresh::begin(&metrics, &keys.book().terms());
    let observer = refresh::Watcher {
        metrics: metrics.clone(),
        alerts: Alerts::new(&work, settings.webhook.as_ref()).map_err(BuildError::Alerts)?,
        declared: declared(&keys).into_iter().collect(),
    };
    // Whoever cannot be had ends the start before this replica is known to others.
    let Served { fleets, engines } = models::serve(&settings, &metrics, &work)?;
    let listeners = Listeners::bind(&settings)?;
    let ledger = open_ledger(&settings, &database, &keys, Arc::new(observer), &ledger_work).await?;
    let directory = Arc::new(keys.announcing(directory::to(ledger.clone())));
    directory::watch(&work, directory.clone(), database.changes());
    let (answers, remembered) = (database.answers(), settings.idempotency.clone());
    let idempotency = Idempotency::open(&ledger_work, answers, remembered, ledger.now()).await?;
    let responses = ResponseKeeper::open(&ledger_work, database.responses(), settings.responses.clone());
    sweep(&work, &ledger);
    seal::daily(&work, &ledger);
    let engines = Arc::new(engines);
    // It ends with the ledger, after the last request has landed.
    let stories = database.stories();
    let learning = Learning::open(&ledger_work, stories, metrics.clone(), settings.learn.clone()).await;
    let agents = Agents::open(&work, database.episodes(), metrics.clone(), settings.agents.clone());
    let gateway = Gateway::new(Parts {
        settings: settings.gateway.clone(),
        tasks: work.clone(),
        metrics: metrics.clone(),
        ledger: ledger.clone(),
        catalog: settings.catalog.clone(),
        fleets,
        calibration: calibration(&settings)?,
        learning,
        agents,
    });
    let look = (metrics.clone(), declared(&directory), engines.clone());
    let shown = gateway.clone();
    let refresh = move || {
        refresh::refresh(&look.0, &ledger, &look.1, &look.2);
        shown.show_fleets();
        shown.show_pace(&look.1);
    };
    let admin = settings.admin.clone().map(|access| {
        let standing = directory::standing(gateway.clone());
        directory::admin(&settings, access, directory.clone(), standing)
    });
    let (http, keys) = (settings.http, directory.keys().clone());
    let refresh = Box::new(refresh);
    let service = Service { settings: http.clone(), keys, gateway, idempotency, responses, metrics, refresh };
    let service = Arc::new(service);
    let mut bound = vec![(listeners.api, http::api(&service))];
    bound.extend(listeners.metrics.map(|bound| (bound, http::monitoring(&service))));
    bound.extend(listeners.admin.zip(admin).map(|(bound, admin)| (bound, http::admin::admin(&admin))));
    Ok(App { http, service, bound, running: Running { work, ledger_work, engines } })
}

/// All that is listened on.
struct Listeners {
    api: Bound,
    metrics: Option<Bound>,
    admin: Option<Bound>,
}

impl Listeners {
    fn bind(settings: &Settings) -> io::Result<Listeners> {
        let api = http::bind(settings.http.listen)?;
        let metrics = settings.http.metrics_listen.map(http::bind).transpose()?;
        let admin = settings.admin.as_ref().map(|access| http::bind(access.listen)).transpose()?;
        Ok(Listeners { api, metrics, admin })
    }
}

/// What ships with the binary, and how able each model is said or guessed to be.
fn calibration(settings: &Settings) -> Result<Calibration, BuildError> {
    let shipped = estimate::shipped().map_err(BuildError::Calibration)?;
    let tariff = |name| settings.catalog.models.get(name).and_then(|model| model.tariff.as_ref());
    let served = settings.backends.iter().flat_map(|backend| &backend.models);
    let abilities = served.map(|model| {
        let guess = || estimate::ability(tariff(&model.name));
        (model.name.clone(), model.ability.unwrap_or_else(guess))
    });
    Ok(Calibration { abilities: abilities.collect(), ..shipped })
}

/// The accounts that metrics name: they are few, and the operator wrote them down.
fn declared(directory: &Directory) -> Vec<AccountId> {
    let book = directory.book();
    let declared = book.declared();
    let keys = declared.tenants.iter().map(|tenant| &tenant.account);
    let anonymous = book.is_open().then(|| Tenant::anonymous().account);
    keys.cloned().chain(anonymous).collect()
}

async fn open_ledger(
    settings: &Settings,
    database: &Database,
    keys: &Directory,
    observer: Arc<dyn ledger::Observer>,
    work: &Tasks,
) -> Result<Ledger, BuildError> {
    let (pace, terms) = (settings.ledger, keys.book().terms());
    Ok(match database.bank() {
        Some(bank) => Ledger::share(work, bank, observer, pace, &terms).await?,
        None => Ledger::open(work, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
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

/// Fleets by the model that they serve.
pub(super) type Fleets = BTreeMap<Arc<str>, Arc<Fleet>>;
