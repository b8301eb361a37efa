//! What there is once in a process, whatever its configuration says next: the books and who may write to them, what is
//! learned and remembered, and what Prometheus sees.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::conversations::ConversationKeeper;
use crate::agent::stored::ResponseKeeper;
use crate::config::Settings;
use crate::gateway::{Agents, Learning};
use crate::http::Room;
use crate::idempotency::Idempotency;
use crate::ledger::{self, Ledger};
use crate::metrics::Metrics;
use crate::storage::Database;
use crate::tasks::Tasks;
use crate::tenant::Directory;
use crate::units::Timestamp;

use super::alerts::Alerts;
use super::build::BuildError;
use super::refresh::{self, Watcher};
use super::{directory, seal};

/// How often reservations are looked for whose flights do not come back.
const SWEEP: Duration = Duration::from_secs(30);

/// All that generations of the configuration share.
pub(super) struct Plant {
    pub(super) metrics: Arc<Metrics>,
    /// Connections and flights.
    pub(super) work: Tasks,
    pub(super) ledger: Ledger,
    pub(super) directory: Arc<Directory>,
    pub(super) idempotency: Idempotency,
    pub(super) responses: ResponseKeeper,
    pub(super) conversations: ConversationKeeper,
    pub(super) learning: Learning,
    pub(super) agents: Agents,
    /// Passes on what the ledger does.
    pub(super) watcher: Arc<Watcher>,
    /// For the bodies of all requests in flight.
    pub(super) room: Room,
}

impl Plant {
    /// Opens the books. From here on this replica is known to others.
    pub(super) async fn open(
        settings: &Settings,
        database: &Database,
        keys: Directory,
        (metrics, alerts): (Arc<Metrics>, Alerts),
        (work, ledger_work): (&Tasks, &Tasks),
    ) -> Result<Plant, BuildError> {
        refresh::begin(&metrics, &keys.book().terms());
        let watcher = Arc::new(Watcher::new(metrics.clone(), alerts, &keys));
        let ledger = open_ledger(settings, database, &keys, watcher.clone(), ledger_work).await?;
        let directory = Arc::new(keys.announcing(directory::to(ledger.clone())));
        directory::watch(work, directory.clone(), database.changes());
        let (answers, remembered) = (database.answers(), settings.idempotency.clone());
        let idempotency = Idempotency::open(ledger_work, answers, remembered, ledger.now()).await?;
        let responses = ResponseKeeper::open(ledger_work, database.responses(), settings.responses.clone());
        let conversations =
            ConversationKeeper::open(ledger_work, database.conversations(), settings.responses.clone());
        sweep(work, &ledger);
        seal::daily(work, &ledger);
        // It ends with the ledger, after the last request has landed.
        let stories = database.stories();
        let learning = Learning::open(ledger_work, stories, metrics.clone(), settings.learn.clone()).await;
        // Who shares a database does so for others. Keys come and go, and another declaration brings another table.
        let (is_shared, known) = (database.bank().is_some(), directory.clone());
        let learning = learning.alone_while(move || !is_shared && known.keys().has_one_account());
        let agents = Agents::open(work, database.episodes(), metrics.clone(), settings.agents.clone());
        let (work, room) = (work.clone(), Room::new(&settings.http));
        Ok(Plant {
            metrics,
            work,
            ledger,
            directory,
            idempotency,
            responses,
            conversations,
            learning,
            agents,
            watcher,
            room,
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
