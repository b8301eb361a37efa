//! What there is once in a process, whatever its configuration says next: the books and who may write to them, what is
//! learned and remembered, and what Prometheus sees.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::conversations::ConversationService;
use crate::agent::stored::ResponseService;
use crate::config::Settings;
use crate::gateway::{EpisodeManager, Learning};
use crate::http::BodyLimiter;
use crate::idempotency::Idempotency;
use crate::ledger::{self, Ledger};
use crate::metrics::Metrics;
use crate::storage::Database;
use crate::tasks::Tasks;
use crate::tenant::Directory;
use crate::units::Timestamp;

use super::alerts::Alerts;
use super::build::BuildError;
use super::refresh::{self, LedgerMonitor};
use super::{directory, seal};

/// How often reservations are looked for whose flights do not come back.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// All that generations of the configuration share.
pub(super) struct SharedState {
    pub(super) metrics: Arc<Metrics>,
    /// Connections and flights.
    pub(super) request_tasks: Tasks,
    pub(super) ledger: Ledger,
    pub(super) directory: Arc<Directory>,
    pub(super) idempotency: Idempotency,
    pub(super) responses: ResponseService,
    pub(super) conversations: ConversationService,
    pub(super) learning: Learning,
    pub(super) agents: EpisodeManager,
    /// Passes on what the ledger does.
    pub(super) ledger_monitor: Arc<LedgerMonitor>,
    /// For the bodies of all requests in flight.
    pub(super) body_limiter: BodyLimiter,
}

impl SharedState {
    /// Opens the books. From here on this replica is known to others.
    pub(super) async fn open(
        settings: &Settings,
        database: &Database,
        keys: Directory,
        (metrics, alerts): (Arc<Metrics>, Alerts),
        (work, ledger_work): (&Tasks, &Tasks),
    ) -> Result<SharedState, BuildError> {
        refresh::zero_warning_counters(&metrics, &keys.snapshot().terms());
        let watcher = Arc::new(LedgerMonitor::new(metrics.clone(), alerts, &keys));
        let ledger = open_ledger(settings, database, &keys, watcher.clone(), ledger_work).await?;
        let directory = Arc::new(keys.with_listener(directory::ledger_announcer(ledger.clone())));
        directory::watch_changes(work, directory.clone(), database.change_listener());
        let (answers, remembered) = (database.idempotency(), settings.idempotency.clone());
        let idempotency = Idempotency::open(ledger_work, answers, remembered, ledger.now()).await?;
        let responses = ResponseService::open(ledger_work, database.responses(), settings.responses.clone());
        let conversations =
            ConversationService::open(ledger_work, database.conversations(), settings.responses.clone());
        sweep_expired(work, &ledger);
        seal::seal_daily(work, &ledger);
        // It ends with the ledger, after the last request has landed.
        let stories = database.history();
        let learning = Learning::open(ledger_work, stories, metrics.clone(), settings.learn.clone()).await;
        // Who shares a database does so for others. Keys come and go, and another declaration brings another table.
        let (is_shared, known) = (database.coordinator().is_some(), directory.clone());
        let learning = learning.with_single_key_check(move || !is_shared && known.keys().has_one_account());
        let agents =
            EpisodeManager::open(work, database.episodes(), metrics.clone(), settings.agents.clone());
        let (work, room) = (work.clone(), BodyLimiter::new(&settings.http));
        Ok(SharedState {
            metrics,
            request_tasks: work,
            ledger,
            directory,
            idempotency,
            responses,
            conversations,
            learning,
            agents,
            ledger_monitor: watcher,
            body_limiter: room,
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
        Some(bank) => Ledger::share(work, bank, observer, pace, &terms).await?,
        None => Ledger::open(work, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
}

/// Resolves reservations that nobody comes back for.
fn sweep_expired(work: &Tasks, ledger: &Ledger) {
    let (ledger, stopping) = (ledger.clone(), work.stopping());
    work.spawn(async move {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
            let expired = ledger.expire(ledger.now());
            if expired > 0 {
                tracing::error!(expired, "reservations expired: their flights did not come back");
            }
        }
    });
}
