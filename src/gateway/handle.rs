//! `Gateway`: the handle for the rest of the program, and its status. How it serves a request is in `lifecycle`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use stint_backend::TargetOutage;
use stint_ledger::{
    AccountTotals, GroupUsage, LedgerError, LimitStatus, OutageStatus, RequestScope, UsageQuery,
};
use stint_types::catalog::Catalog;
use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, Money, Timestamp};

use super::feedback::Learning;
use super::request::scope;
use super::state::{GatewayParts, GatewayState, LiveRequestView, PaceStatus};
use super::{RequestRefusal, key_scope, zero_metrics};

/// The gateway. Clones share it.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(super) state: Arc<GatewayState>,
}

/// Whether new requests can be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// They can.
    Ready,
    /// It is shutting down.
    Stopping,
    /// The ledger cannot record them.
    LedgerUnavailable {
        /// Since when the database is gone, and why, where it is.
        outage: Option<OutageStatus>,
    },
    /// Every model says that it takes no requests, or is left alone. Of them, the one that may be asked again first.
    NoModel(TargetOutage),
}

impl Gateway {
    /// A gateway of these parts.
    pub fn new(parts: GatewayParts) -> Gateway {
        zero_metrics::zero_all(&parts);
        Gateway { state: Arc::new(GatewayState::new(parts)) }
    }

    /// The same gateway of other parts, which takes over from this one while its requests go on. The two share prices of money,
    /// places, and what was found out about models that stay as they were.
    #[must_use]
    pub fn with_parts(&self, parts: GatewayParts) -> Gateway {
        zero_metrics::zero_all(&parts);
        Gateway { state: Arc::new(self.state.with_parts(parts)) }
    }

    /// All models and routes.
    pub fn catalog(&self) -> &Catalog {
        &self.state.parts.catalog
    }

    /// Nothing has that name that this caller may name.
    pub fn unknown(&self, tenant: &Tenant, name: &str) -> RequestRefusal {
        self.state.unknown(tenant, name)
    }

    /// What is learned, and what is remembered of requests.
    pub fn learning(&self) -> &Learning {
        &self.state.parts.learning
    }

    /// The models and routes that a caller may name.
    pub fn catalog_of(&self, tenant: &Tenant) -> Catalog {
        key_scope::catalog(&self.state.parts.catalog, &tenant.access)
    }

    /// How every limit of a tenant and of the accounts above it stands. Where replicas share the accounts, the others hand
    /// back what they hold for their next requests first, so that only what is used counts; what of that is set aside
    /// elsewhere counts as spent.
    pub async fn statement(&self, tenant: &Tenant) -> Vec<LimitStatus> {
        self.state.parts.ledger.refresh_limits(&tenant.account, &RequestScope::default()).await;
        self.account_statement(&tenant.account)
    }

    /// How every limit of an account and of those above it stands. Where replicas share the accounts, what others have is
    /// known as of seconds ago, and what they hold for their next requests counts as spent.
    pub fn account_statement(&self, account: &AccountId) -> Vec<LimitStatus> {
        let ledger = &self.state.parts.ledger;
        ledger.statement(account, &RequestScope::default(), ledger.now())
    }

    /// What a request with these members is about; its model, where it names one and no route.
    pub fn request_scope(&self, model: &str, extra: &Map<String, Value>) -> RequestScope {
        let named = self.state.parts.catalog.models.get_key_value(model);
        RequestScope { model: named.map(|(name, _)| name.clone()), ..scope::of(extra) }
    }

    /// How the limits stand that a request of this scope is under.
    pub fn request_statement(&self, account: &AccountId, about: &RequestScope) -> Vec<LimitStatus> {
        let ledger = &self.state.parts.ledger;
        let mut lines = ledger.statement(account, about, ledger.now());
        lines.retain(|line| scope::is_under(about, &line.limit.facet));
        lines
    }

    /// Every account over all time, by name. Where replicas share the accounts, what this one spent since it began.
    pub fn account_totals(&self) -> Vec<AccountTotals> {
        self.state.parts.ledger.totals()
    }

    /// All that is reserved now, and for how many requests.
    pub fn reserved(&self) -> (Money, usize) {
        let ledger = &self.state.parts.ledger;
        (ledger.reserved().money, ledger.open_reservations())
    }

    /// So many of the requests that run now at most, those that have run the longest first; and how many there are.
    pub fn live_requests(&self, most: usize) -> (Vec<LiveRequestView>, usize) {
        self.state.live.list(most)
    }

    /// The time by which requests are admitted: the database's, where replicas share one.
    pub fn now(&self) -> Timestamp {
        self.state.parts.ledger.now()
    }

    /// What was used, by group.
    ///
    /// # Errors
    /// When the ledger's journal cannot be read.
    pub async fn usage(&self, query: &UsageQuery) -> Result<Vec<GroupUsage>, LedgerError> {
        self.state.parts.ledger.usage(query).await
    }

    /// Why a model cannot be asked now, where its targets say so themselves.
    pub fn outage(&self, model: &str) -> Option<TargetOutage> {
        self.state.parts.fleets.get(model)?.outage()
    }

    /// Whether a model is in this process's memory now; nothing of one that is elsewhere, or stays.
    pub fn is_loaded(&self, model: &str) -> Option<bool> {
        self.state.parts.fleets.get(model)?.is_loaded()
    }

    /// True from the beginning of shutdown on.
    pub fn is_stopping(&self) -> bool {
        self.state.parts.tasks.is_stopping()
    }

    /// Whether new requests can be served, and why not. One model that may be asked is enough, and so is one whose rest is over:
    /// a gateway that gets no requests while it is not ready becomes ready again by itself.
    pub fn readiness(&self) -> Readiness {
        let stats = self.state.parts.ledger.stats();
        match (self.is_stopping(), stats.stalled) {
            (true, _) => Readiness::Stopping,
            (false, true) => Readiness::LedgerUnavailable { outage: stats.outage },
            (false, false) => self.unavailability_of_all().map_or(Readiness::Ready, Readiness::NoModel),
        }
    }

    /// Why no model at all can be asked, where that is so.
    fn unavailability_of_all(&self) -> Option<TargetOutage> {
        let fleets = self.state.parts.fleets.values();
        let outages: Option<Vec<_>> = fleets.map(|fleet| fleet.unavailability()).collect();
        outages?.into_iter().min_by_key(|outage| outage.retry_in.unwrap_or(Duration::MAX))
    }

    /// Updates the gauges of targets and of the queues in front of them.
    pub fn refresh_fleet_metrics(&self) {
        self.state.parts.fleets.values().for_each(|fleet| fleet.update_gauges());
    }

    /// How the budget of one of an account's limits stands to its pace, where it is one that should last.
    pub fn pace_status(&self, account: &AccountId, line: &LimitStatus) -> Option<PaceStatus> {
        self.state.pacing.pace_status(account, line)
    }

    /// Updates the gauges of the price of money of these accounts.
    pub fn refresh_pacing_metrics(&self, accounts: &[AccountId]) {
        let series = &self.state.parts.metrics.rollout;
        for account in accounts {
            let tenant = &[account.as_str()];
            let lines = self.account_statement(account);
            let price = self.state.pacing.price(account, &lines, self.now());
            let highest = self.state.pacing.take_highest_price(account);
            series.shadow_price.with_label_values(tenant).set(highest.unwrap_or(price));
            let paced = lines.iter().filter_map(|line| self.pace_status(account, line));
            if let Some(tightest) = paced.max_by(|a, b| a.price.total_cmp(&b.price)) {
                series.rate.with_label_values(tenant).set(tightest.rate);
                series.target.with_label_values(tenant).set(tightest.target);
            }
        }
    }
}
