//! What lives once in a process and outlives every configuration: ledger, keys, what is learned and stored, and metrics. `build`
//! opens it; configuration snapshots share it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Settings;
use crate::gateway::{EpisodeManager, Learning};
use crate::http::admin::{PageHistory, StoredContent};
use crate::http::{AccountRequests, BodyLimiter};
use crate::traces::{self, Tracer};
use stint_ledger::{self as ledger, Ledger};
use stint_sessions::agent::conversations::ConversationService;
use stint_sessions::agent::stored::ResponseService;
use stint_sessions::idempotency::Idempotency;
use stint_storage::Database;
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::tenant::Directory;
use stint_types::units::Timestamp;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use super::allocator;
use super::error::BuildError;
use super::ledger_monitor::{LedgerMonitor, zero_warning_counters};
use super::{clock_watch, directory, seal};

/// How often expired reservations are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// How often it is looked whether the ledger's file is in its place.
const PLACE_INTERVAL: Duration = Duration::from_secs(5);

/// All that configuration snapshots share.
pub(super) struct SharedState {
    /// Begins the traces of requests, where they go somewhere.
    pub(super) tracer: Option<Tracer>,
    pub(super) metrics: Arc<Metrics>,
    /// Connections and requests.
    pub(super) request_tasks: Tasks,
    /// What ends after them.
    pub(super) ledger_tasks: Tasks,
    pub(super) ledger: Ledger,
    pub(super) directory: Arc<Directory>,
    pub(super) idempotency: Idempotency,
    pub(super) responses: ResponseService,
    pub(super) conversations: ConversationService,
    /// The stores of both.
    pub(super) stored: StoredContent,
    pub(super) learning: Learning,
    pub(super) agents: EpisodeManager,
    /// Passes on what the ledger does.
    pub(super) ledger_monitor: Arc<LedgerMonitor>,
    /// Limits the bodies of all requests in flight.
    pub(super) body_limiter: BodyLimiter,
    /// Counts the requests in flight of each account.
    pub(super) account_requests: AccountRequests,
    /// The last minutes, for the page.
    pub(super) page_history: PageHistory,
}

impl SharedState {
    /// Opens the ledger. From here on other replicas know this one.
    pub(super) async fn open(
        settings: &Settings,
        database: &Database,
        keys: Directory,
        metrics: Arc<Metrics>,
        ledger_monitor: LedgerMonitor,
        request_tasks: &Tasks,
        ledger_tasks: &Tasks,
    ) -> Result<SharedState, BuildError> {
        zero_warning_counters(&metrics, &keys.snapshot().terms());
        let ledger_monitor = Arc::new(ledger_monitor);
        let ledger = open_ledger(settings, database, &keys, ledger_monitor.clone(), ledger_tasks).await?;
        let directory = Arc::new(keys.with_listener(directory::ledger_announcer(ledger.clone())));
        // While requests end, keys are revoked too.
        directory::watch_changes(ledger_tasks, directory.clone(), database.change_listener());
        let (answers, remembered) = (database.idempotency(), settings.idempotency.clone());
        let idempotency = Idempotency::open(ledger_tasks, answers, remembered, ledger.now()).await?;
        let stored = directory::content(database);
        let response_settings = || settings.responses.clone();
        let responses = ResponseService::open(ledger_tasks, stored.responses.clone(), response_settings());
        let conversations =
            ConversationService::open(ledger_tasks, stored.conversations.clone(), response_settings());
        sweep_expired(request_tasks, &ledger);
        watch_place(request_tasks, &ledger);
        // Where replicas share the accounts, time is the database's.
        if database.coordinator().is_none() {
            clock_watch::watch_clock(request_tasks, metrics.clone());
        }
        seal::seal_daily(request_tasks, &ledger);
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        allocator::release_free_memory(request_tasks);
        // It ends with the ledger, after the last request has finished.
        let stories = database.history();
        let learning = Learning::open(ledger_tasks, stories, metrics.clone(), settings.learn.clone()).await;
        // A replica that shares its database serves accounts of others too. Keys change while the process runs, so each call
        // checks again.
        let (is_shared, known) = (database.coordinator().is_some(), directory.clone());
        let learning = learning.with_single_key_check(move || !is_shared && known.keys().has_one_account());
        let agents = EpisodeManager::open(
            request_tasks,
            database.episodes(),
            metrics.clone(),
            settings.agents.clone(),
        );
        let open = |settings| traces::open(ledger_tasks, metrics.clone(), settings);
        let tracer = settings.traces.as_ref().map(open).transpose()?;
        Ok(SharedState {
            page_history: PageHistory::start(request_tasks, metrics.clone()),
            tracer,
            metrics,
            request_tasks: request_tasks.clone(),
            ledger_tasks: ledger_tasks.clone(),
            ledger,
            directory,
            idempotency,
            responses,
            conversations,
            stored,
            learning,
            agents,
            ledger_monitor,
            body_limiter: BodyLimiter::new(&settings.http),
            account_requests: AccountRequests::default(),
        })
    }
}

async fn open_ledger(
    settings: &Settings,
    database: &Database,
    keys: &Directory,
    observer: Arc<dyn ledger::Observer>,
    work: &Tasks,
) -> Result<Ledger, BuildError> {
    let (pace, terms) = (settings.ledger, keys.snapshot().terms());
    Ok(match database.coordinator() {
        Some(coordinator) => Ledger::share(work, coordinator, observer, pace, &terms).await?,
        None => Ledger::open(work, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
}

/// Looks now and then whether the ledger's file is still in its place.
fn watch_place(work: &Tasks, ledger: &Ledger) {
    let ledger = ledger.clone();
    every(work, PLACE_INTERVAL, move || ledger.check_place());
}

/// Does something at such intervals, until shutdown.
fn every(work: &Tasks, interval: Duration, act: impl Fn() + Send + 'static) {
    let stopping = work.stopping();
    work.spawn(async move {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(interval) => act(),
            }
        }
    });
}

/// Expires reservations that no request settles.
fn sweep_expired(work: &Tasks, ledger: &Ledger) {
    let ledger = ledger.clone();
    every(work, SWEEP_INTERVAL, move || {
        let expired = ledger.expire(ledger.now());
        if expired > 0 {
            tracing::error!(expired, "reservations expired: their requests never settled them");
        }
    });
}
