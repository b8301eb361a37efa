//! The gateway as others hold it: what it is made of, and what it tells about itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::backend::fleet::Fleet;
use crate::catalog::{Calibration, Catalog, Prices};
use crate::chat::Request;
use crate::ledger::{AbandonPolicy, GroupUsage, Ledger, LedgerError, LimitStatus, RequestScope, UsageQuery};
use crate::metrics::{Metrics, OTHER};
use crate::tasks::Tasks;
use crate::tenant::Tenant;
use crate::units::{AccountId, RequestId, Timestamp, nearest};

use super::episodes::EpisodeManager;
use super::feedback::Learning;
use super::state::demotions::Demotions;
use super::state::pacing::Pacing;
use super::state::verifiers::Verifiers;
use super::state::wait::WaitQueues;
use super::state::withdrawals::Withdrawals;
use super::{RequestRefusal, Settings, key_scope, zero_metrics};

/// How long after its deadline a reservation is held for a flight that does not come back.
pub(super) const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The gateway. Clones share it.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(super) parts: Arc<GatewayParts>,
    pub(super) demotions: Arc<Demotions>,
    pub(super) withdrawals: Arc<Withdrawals>,
    pub(super) verifiers: Arc<Verifiers>,
    pub(super) pacing: Arc<Pacing>,
    /// Who waits for money.
    pub(super) wait_queues: Arc<WaitQueues>,
    admissions: Arc<Semaphore>,
}

/// Whether new requests can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// They can.
    Ready,
    /// It is shutting down.
    Stopping,
    /// The ledger cannot record them.
    LedgerUnavailable {
        /// Since when the database is gone, where that is why.
        gone_since: Option<Timestamp>,
    },
}

/// What a gateway is made of.
pub struct GatewayParts {
    /// Limits of a flight.
    pub settings: Settings,
    /// Background work.
    pub tasks: Tasks,
    /// What Prometheus sees.
    pub metrics: Arc<Metrics>,
    /// Accounts and reservations.
    pub ledger: Ledger,
    /// Models and routes.
    pub catalog: Catalog,
    /// Who serves each model; a fleet for every model of the catalogue.
    pub fleets: BTreeMap<Arc<str>, Arc<Fleet>>,
    /// What was learned about lengths and success before.
    pub calibration: Calibration,
    /// What is learned from outcomes.
    pub learning: Learning,
    /// Runs of agents.
    pub episodes: EpisodeManager,
}

impl std::fmt::Debug for GatewayParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayParts").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway of these parts.
    pub fn new(parts: GatewayParts) -> Gateway {
        zero_metrics::zero_all(&parts);
        let places = Arc::new(Semaphore::new(parts.settings.flights_max));
        let verifiers = Arc::new(Verifiers::of(&parts.catalog));
        Gateway {
            parts: Arc::new(parts),
            demotions: Arc::default(),
            withdrawals: Arc::default(),
            verifiers,
            pacing: Arc::default(),
            wait_queues: Arc::default(),
            admissions: places,
        }
    }

    /// The same gateway of other parts, which takes over from this one while its flights go on. Prices of money, places and
    /// what was found out about models that stay as they were are one with this one's.
    #[must_use]
    pub fn with_parts(&self, parts: GatewayParts) -> Gateway {
        let demotions = Arc::new(self.demotions.carry_over(&self.parts.catalog, &parts.catalog));
        let withdrawals = Arc::new(self.withdrawals.carry_over(&self.parts.catalog, &parts.catalog));
        let (pacing, queues, places) =
            (self.pacing.clone(), self.wait_queues.clone(), self.admissions.clone());
        Gateway {
            demotions,
            withdrawals,
            pacing,
            wait_queues: queues,
            admissions: places,
            ..Gateway::new(parts)
        }
    }

    /// All models and routes.
    pub fn catalog(&self) -> &Catalog {
        &self.parts.catalog
    }

    /// Nothing has that name that this caller may name.
    pub fn unknown(&self, tenant: &Tenant, name: &str) -> RequestRefusal {
        let known = self.catalog_of(tenant);
        let names = known.models.keys().chain(known.routes.keys()).map(AsRef::as_ref);
        // Of a shorter name every letter may be a slip.
        let nearest = nearest(name, names).filter(|_| name.len() > 2).map(Into::into);
        RequestRefusal::UnknownModel { name: name.to_owned(), nearest }
    }

    /// What is learned, and what is remembered of requests.
    pub fn learning(&self) -> &Learning {
        &self.parts.learning
    }

    /// The models and routes that a caller may name.
    pub fn catalog_of(&self, tenant: &Tenant) -> Catalog {
        key_scope::catalog(&self.parts.catalog, &tenant.access)
    }

    /// How every limit of a tenant and of the accounts above it stands. Where replicas share the accounts, the others hand
    /// back what they hold for their next requests first, so that only what is used counts; what of that is set aside
    /// elsewhere counts as spent.
    pub async fn statement(&self, tenant: &Tenant) -> Vec<LimitStatus> {
        self.parts.ledger.refresh_limits(&tenant.account, &RequestScope::default()).await;
        self.account_statement(&tenant.account)
    }

    /// How every limit of an account and of those above it stands. Where replicas share the accounts, what others have is
    /// known as of seconds ago, and what they hold for their next requests counts as spent.
    pub fn account_statement(&self, account: &AccountId) -> Vec<LimitStatus> {
        let ledger = &self.parts.ledger;
        ledger.statement(account, &RequestScope::default(), ledger.now())
    }

    /// The time by which requests are admitted: the database's, where replicas share one.
    pub fn now(&self) -> Timestamp {
        self.parts.ledger.now()
    }

    /// What was used, by group.
    ///
    /// # Errors
    /// When the ledger's journal cannot be read.
    pub async fn usage(&self, query: &UsageQuery) -> Result<Vec<GroupUsage>, LedgerError> {
        self.parts.ledger.usage(query).await
    }

    /// Why a model cannot be asked until another configuration, where that is so.
    pub fn unavailable(&self, model: &str) -> Option<&str> {
        self.parts.fleets.get(model)?.unavailable()
    }

    /// Whether new requests can be served, and why not.
    pub fn readiness(&self) -> Readiness {
        let stats = self.parts.ledger.stats();
        match (self.parts.tasks.is_stopping(), stats.stalled) {
            (true, _) => Readiness::Stopping,
            (false, true) => Readiness::LedgerUnavailable { gone_since: stats.gone_since },
            (false, false) => Readiness::Ready,
        }
    }

    /// Refuses more choices than may be asked for.
    pub(super) fn count_choices(&self, request: &Request) -> Result<(), RequestRefusal> {
        let (asked, most) = (request.choices, self.parts.settings.choices_max);
        if asked > most { Err(RequestRefusal::TooManyChoices { asked, most }) } else { Ok(()) }
    }

    /// A place among those in flight.
    pub(super) fn acquire_admission(&self) -> Result<OwnedSemaphorePermit, RequestRefusal> {
        // Those who are refused together are not to come back together.
        let retry_after = Duration::from_secs(1 + RequestId::new().seed() % 3);
        self.admissions.clone().try_acquire_owned().map_err(|_| RequestRefusal::Overloaded { retry_after })
    }

    /// Brings the series up to date that tell of targets and of those who wait for them.
    pub fn refresh_fleet_metrics(&self) {
        self.parts.fleets.values().for_each(|fleet| fleet.update_gauges());
    }

    /// How long a request may take altogether.
    pub(super) fn time_limit(&self, request: &Request) -> Duration {
        let most = self.parts.settings.time_max;
        request.budget.deadline.map_or(most, |stated| stated.min(most))
    }

    pub(super) fn prices(&self, model: &str) -> Option<Prices> {
        let tariff = self.parts.catalog.models.get(model).and_then(|model| model.tariff);
        tariff.map(|tariff| tariff.rates.list)
    }

    pub(super) fn if_abandoned(&self, model: &str) -> AbandonPolicy {
        let stops = self.parts.catalog.models.get(model).is_some_and(|model| model.stops_billing);
        if stops { AbandonPolicy::PostMetered } else { AbandonPolicy::PostWhole }
    }

    /// A name of the catalogue as it is; a caller's invention as `other`.
    pub(super) fn route_label(&self, name: &str) -> Arc<str> {
        let catalog = &self.parts.catalog;
        let known = catalog.routes.get_key_value(name).map(|(name, _)| name);
        let known = known.or_else(|| catalog.models.get_key_value(name).map(|(name, _)| name));
        known.cloned().unwrap_or_else(|| OTHER.into())
    }
}
