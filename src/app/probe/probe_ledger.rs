//! Books a probe's calls in the ledger, on an account of their own: they cost money like any other.

use std::sync::Arc;
use std::time::Duration;

use crate::app::output::print_line;
use crate::config::Settings;
use stint_ledger::{
    AbandonPolicy, AccountId, Ledger, LedgerError, Observer, RequestScope, Reservation, ReservationRequest,
    SettlementDetail,
};
use stint_storage::{self as storage, Database};
use stint_types::catalog::{ChoiceUsage, Model, WorstCase};
use stint_types::chat::CacheTtl;
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::{Money, RequestId, Timestamp, Tokens};

/// Whose they are. Nothing limits it.
const ACCOUNT: &str = "probe";
/// How long a call is held that nobody comes back for.
const RESERVATION_TTL: Duration = Duration::from_secs(300);
/// How long the end waits until all is written down.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a probe books its calls; nowhere, where no ledger lasts or a server holds it.
pub(super) struct ProbeLedger {
    ledger: Option<Ledger>,
    tasks: Tasks,
}

struct NullObserver;

impl Observer for NullObserver {}

impl ProbeLedger {
    /// Opens the ledger of the configuration.
    pub(super) async fn open(settings: &Settings) -> ProbeLedger {
        let tasks = Tasks::default();
        if matches!(settings.storage, storage::Settings::Memory) {
            return ProbeLedger { ledger: None, tasks };
        }
        let ledger = match open_ledger(settings, &tasks).await {
            Ok(ledger) => Some(ledger),
            Err(error) => {
                print_line(&format!("its calls are not booked: {error}"));
                None
            }
        };
        ProbeLedger { ledger, tasks }
    }

    /// The time by the ledger's clock; by this machine's, where nothing is booked.
    pub(super) fn now(&self) -> Timestamp {
        self.ledger.as_ref().map_or_else(Timestamp::now, Ledger::now)
    }

    /// Makes a call durable before anything is sent; nothing, where it is not booked.
    pub(super) async fn dispatch(
        &self,
        model: &Model,
        prompt: Tokens,
        written: Tokens,
    ) -> Result<Option<Reservation>, LedgerError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        // A thought may be read again, and the answer asked for in a second call.
        let cost = |tariff: stint_types::catalog::Tariff| {
            tariff.worst_cost(prompt, written, CacheTtl::Minutes)
                + tariff.worst_cost(prompt + written, written, CacheTtl::Minutes)
        };
        let now = ledger.now();
        let claim = ReservationRequest {
            account: AccountId::new(ACCOUNT),
            id: RequestId::new(),
            about: RequestScope { model: Some(model.name.clone()), ..RequestScope::default() },
            worst: WorstCase { money: model.tariff.map_or(Money::ZERO, cost), thinking: written },
            step: None,
            prices: model.tariff.map(|tariff| tariff.rates.list),
            if_abandoned: if model.stops_billing {
                AbandonPolicy::PostMetered
            } else {
                AbandonPolicy::PostWhole
            },
            rate: None,
            now,
            expires: now + RESERVATION_TTL,
        };
        let mut reservation = ledger.obtain(claim).await?;
        reservation.dispatch().await?;
        Ok(Some(reservation))
    }

    /// Books what a call took.
    pub(super) async fn settle(&self, reservation: Option<Reservation>, cost: Money, spent: &ChoiceUsage) {
        let Some(reservation) = reservation else { return };
        let detail = SettlementDetail {
            prompt: spent.input(),
            overhead: spent.overhead,
            solution: spent.solution,
            other: spent.undelivered.saturating_sub(spent.undelivered_thinking),
            outcome: "probe".into(),
            ..SettlementDetail::default()
        };
        reservation.settle(cost, spent.thinking_total(), detail).wait_durable(CLOSE_TIMEOUT).await;
    }

    /// Closes the ledger; returns where the calls were booked.
    pub(super) async fn close(self) -> &'static str {
        let is_booked = self.ledger.is_some();
        drop(self.ledger);
        self.tasks.stop();
        self.tasks.drain(CLOSE_TIMEOUT).await;
        if is_booked { ", booked on the account `probe`" } else { "" }
    }
}

async fn open_ledger(settings: &Settings, tasks: &Tasks) -> Result<Ledger, Box<dyn std::error::Error>> {
    let database = Database::open_as_it_is(&settings.storage).await?;
    let terms = [AccountTerms::unlimited(AccountId::new(ACCOUNT))];
    let observer: Arc<dyn Observer> = Arc::new(NullObserver);
    let pace = settings.ledger;
    Ok(match database.coordinator() {
        Some(coordinator) => Ledger::share(tasks, coordinator, observer, pace, &terms).await?,
        None => Ledger::open(tasks, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
}
