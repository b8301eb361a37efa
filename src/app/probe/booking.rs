//! The calls of a probe in the ledger: they cost money like any other, so they are booked, on an account of their own.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{Model, Spent, WorstCase};
use crate::chat::Keep;
use crate::config::Settings;
use crate::ledger::{
    About, AccountId, Claim, IfAbandoned, Ledger, LedgerError, Observer, Reservation, SettlementDetail,
};
use crate::storage::{self, Database};
use crate::tasks::Tasks;
use crate::tenant::Terms;
use crate::units::{Money, RequestId, Timestamp, Tokens};

use super::super::command::say;

/// Whose they are. Nothing limits it.
const ACCOUNT: &str = "probe";
/// How long a call is held that nobody comes back for.
const HELD: Duration = Duration::from_secs(300);
/// How long the end waits until all is written down.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a probe books its calls; nowhere, where no ledger lasts or a server holds it.
pub(super) struct Booking {
    ledger: Option<Ledger>,
    tasks: Tasks,
}

struct Quiet;

impl Observer for Quiet {}

impl Booking {
    /// Opens the ledger of the configuration.
    pub(super) async fn open(settings: &Settings) -> Booking {
        let tasks = Tasks::default();
        if matches!(settings.storage, storage::Settings::Memory) {
            return Booking { ledger: None, tasks };
        }
        let ledger = match opened(settings, &tasks).await {
            Ok(ledger) => Some(ledger),
            Err(error) => {
                say(&format!("its calls are not booked: {error}"));
                None
            }
        };
        Booking { ledger, tasks }
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
        let cost = |tariff: crate::catalog::Tariff| {
            tariff.worst(prompt, written, Keep::Minutes)
                + tariff.worst(prompt + written, written, Keep::Minutes)
        };
        let now = ledger.now();
        let claim = Claim {
            account: AccountId::new(ACCOUNT),
            id: RequestId::new(),
            about: About { model: Some(model.name.clone()), ..About::default() },
            worst: WorstCase { money: model.tariff.map_or(Money::ZERO, cost), thinking: written },
            step: None,
            prices: model.tariff.map(|tariff| tariff.rates.list),
            if_abandoned: if model.stops_billing { IfAbandoned::PostMetered } else { IfAbandoned::PostWhole },
            rate: None,
            now,
            expires: now + HELD,
        };
        let mut reservation = ledger.obtain(claim).await?;
        reservation.dispatch().await?;
        Ok(Some(reservation))
    }

    /// Books what a call took.
    pub(super) async fn settle(&self, reservation: Option<Reservation>, cost: Money, spent: &Spent) {
        let Some(reservation) = reservation else { return };
        let detail = SettlementDetail {
            prompt: spent.input(),
            overhead: spent.overhead,
            solution: spent.solution,
            other: spent.other.saturating_sub(spent.other_thinking),
            outcome: "probe".into(),
            ..SettlementDetail::default()
        };
        reservation.settle(cost, spent.thought(), detail).journalled(PATIENCE).await;
    }

    /// Closes the ledger; says where the calls were booked.
    pub(super) async fn close(self) -> &'static str {
        let is_booked = self.ledger.is_some();
        drop(self.ledger);
        self.tasks.stop();
        self.tasks.drain(PATIENCE).await;
        if is_booked { ", booked on the account `probe`" } else { "" }
    }
}

async fn opened(settings: &Settings, tasks: &Tasks) -> Result<Ledger, Box<dyn std::error::Error>> {
    let database = Database::open(&settings.storage).await?;
    let terms = [Terms::unlimited(AccountId::new(ACCOUNT))];
    let observer: Arc<dyn Observer> = Arc::new(Quiet);
    let pace = settings.ledger;
    Ok(match database.bank() {
        Some(bank) => Ledger::share(tasks, bank, observer, pace, &terms).await?,
        None => Ledger::open(tasks, database.journal(), observer, pace, &terms, Timestamp::now()).await?,
    })
}
