//! From a request to a flight: estimate, plan, reserve.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use crate::backend::fleet::{Beginning, Fleet, Party};
use crate::catalog::{Calibration, Catalog, Market, Model, Plan, Prices};
use crate::chat::Request;
use crate::estimate;
use crate::idempotency::Ticket;
use crate::ledger::{
    About, Claim, IfAbandoned, Ledger, LedgerError, Line, Refused, Reservation, Usage, UsageQuery,
};
use crate::metrics::{Metrics, OTHER};
use crate::plan;
use crate::tasks::Tasks;
use crate::tenant::Tenant;
use crate::units::{AccountId, Limit, RequestId, Timestamp, Tokens, mixed};

use super::considered::Considered;
use super::demotions::Demotions;
use super::flying::Flying;
use super::learning::Learning;
use super::pacing::Pacing;
use super::rollout::{self, Observed, Rules};
use super::verifiers::Verifiers;
use super::{Flight, Refusal, Settings, about, needs, scope, voting};

/// How long after its deadline a reservation is held for a flight that does not come back.
pub(super) const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The gateway. Clones share it.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(super) parts: Arc<Parts>,
    demotions: Arc<Demotions>,
    verifiers: Arc<Verifiers>,
    pub(super) pacing: Arc<Pacing>,
    places: Arc<Semaphore>,
}

/// What a gateway is made of.
pub struct Parts {
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
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway of these parts.
    pub fn new(parts: Parts) -> Gateway {
        parts.catalog.models.keys().for_each(|model| parts.metrics.begin_model(model));
        let places = Arc::new(Semaphore::new(parts.settings.flights_max));
        let verifiers = Arc::new(Verifiers::of(&parts.catalog));
        Gateway {
            parts: Arc::new(parts),
            demotions: Arc::default(),
            verifiers,
            pacing: Arc::default(),
            places,
        }
    }

    /// All models and routes.
    pub fn catalog(&self) -> &Catalog {
        &self.parts.catalog
    }

    /// What is learned, and what is remembered of requests.
    pub fn learning(&self) -> &Learning {
        &self.parts.learning
    }

    /// The models and routes that a caller may name.
    pub fn catalog_of(&self, tenant: &Tenant) -> Catalog {
        scope::catalog(&self.parts.catalog, &tenant.access)
    }

    /// How every limit of a tenant and of the accounts above it stands. Where replicas share the accounts, the others hand
    /// back what they hold for their next requests first, so that only what is used counts; what of that is set aside
    /// elsewhere counts as spent.
    pub async fn statement(&self, tenant: &Tenant) -> Vec<Line> {
        self.parts.ledger.gather(&tenant.account, &About::default()).await;
        self.account_statement(&tenant.account)
    }

    /// How every limit of an account and of those above it stands. Where replicas share the accounts, what others have is
    /// known as of seconds ago, and what they hold for their next requests counts as spent.
    pub fn account_statement(&self, account: &AccountId) -> Vec<Line> {
        let ledger = &self.parts.ledger;
        ledger.statement(account, &About::default(), ledger.now())
    }

    /// The time by which requests are admitted: the database's, where replicas share one.
    pub fn now(&self) -> Timestamp {
        self.parts.ledger.now()
    }

    /// What was used, by group.
    ///
    /// # Errors
    /// When the ledger's journal cannot be read.
    pub async fn usage(&self, query: &UsageQuery) -> Result<Vec<Usage>, LedgerError> {
        self.parts.ledger.usage(query).await
    }

    /// True where new requests can be served: the ledger can record them.
    pub fn is_ready(&self) -> bool {
        !self.parts.tasks.is_stopping() && !self.parts.ledger.stats().stalled
    }

    /// Decides about a request, sets its worst case aside, and lets it fly. The `ticket` of its idempotency
    /// key is begun before anything is sent, and let go where it is refused.
    ///
    /// # Errors
    /// When no offer serves it or its account does not allow one; nothing is reserved then.
    pub async fn admit(
        &self,
        tenant: &Tenant,
        request: Request,
        ticket: Option<Ticket>,
    ) -> Result<Flight, Refusal> {
        let arrived = Instant::now();
        let route = self.route_label(&request.model);
        let admitted = self.decide(tenant, request, ticket, arrived).await;
        if let Err(refusal) = &admitted {
            if let Some(limit) = limit(refusal) {
                self.parts.ledger.refused(&tenant.account, limit);
            }
            let metrics = &self.parts.metrics;
            metrics.requests.total.with_label_values(&[&*route, "none", "refused"]).inc();
            metrics.requests.refusals.with_label_values(&[&limit_label(refusal)]).inc();
        }
        admitted
    }

    async fn decide(
        &self,
        tenant: &Tenant,
        request: Request,
        ticket: Option<Ticket>,
        arrived: Instant,
    ) -> Result<Flight, Refusal> {
        if self.parts.tasks.is_stopping() {
            return Err(Refusal::Stopping);
        }
        self.count_choices(&request)?;
        let place = self.place()?;
        let id = RequestId::new();
        let considered = self.consider(tenant, request)?;
        let (plan, reservation) = self.reserve(tenant, id, &considered).await?;
        let observed = self.observe(tenant, id, &considered);
        let (expected, now) = (plan.best.cost, self.now());
        self.pacing.departed(&tenant.account, &considered.paced, expected, now);
        let (events, reports) = mpsc::channel(self.parts.settings.events_max);
        let (model, reserved) = (plan.best.model.clone(), plan.best.worst.money);
        let choices = considered.request.choices;
        let grounds = considered.grounds(&tenant.account);
        let deadline = arrived + self.time(&considered.request);
        let flying = Flying {
            parts: self.parts.clone(),
            demotions: self.demotions.clone(),
            verifiers: self.verifiers.clone(),
            route: self.route_label(&considered.rules.named),
            decided_by: considered.rules.policy,
            policy: considered.rules.route,
            observed,
            pacing: self.pacing.clone(),
            paced: considered.paced,
            expected,
            models: considered.models,
            account: tenant.account.clone(),
            id,
            ticket,
            beginning: Beginning::of(&considered.request),
            party: Party::of(&tenant.account),
            priority: tenant.priority,
            request: considered.request,
            demand: considered.demand,
            market: considered.market,
            plan,
            grounds,
            arrived,
            deadline,
        };
        self.parts.tasks.spawn(async move {
            flying.fly(reservation, events).await;
            drop(place);
        });
        Ok(Flight { id, model, choices, reserved, reports })
    }

    /// Refuses more choices than may be asked for.
    pub(super) fn count_choices(&self, request: &Request) -> Result<(), Refusal> {
        let (asked, most) = (request.choices, self.parts.settings.choices_max);
        if asked > most { Err(Refusal::TooManyChoices { asked, most }) } else { Ok(()) }
    }

    /// A place among those in flight.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        // Those who are refused together are not to come back together.
        let retry_after = Duration::from_secs(1 + RequestId::new().seed() % 3);
        self.places.clone().try_acquire_owned().map_err(|_| Refusal::Overloaded { retry_after })
    }

    /// Estimates the demand and looks at the market.
    pub(super) fn consider(&self, tenant: &Tenant, request: Request) -> Result<Considered, Refusal> {
        let catalog = &self.parts.catalog;
        let user = request.extra.get("user").and_then(serde_json::Value::as_str).unwrap_or_default();
        let share = Beginning::of(&request).share(&format!("{} {user}", tenant.account.as_str()));
        let rules = rollout::rules(catalog, &tenant.access, &request.model, share)
            .ok_or_else(|| Refusal::UnknownModel(request.model.clone()))?;
        let (route, no_vote) = voting::allowed(rules.route, &request);
        let rules = Rules { route, ..rules };
        let models: Vec<Arc<Model>> =
            catalog.candidates(&rules.route).map(|model| self.demotions.apply(model)).collect();
        let mut prompts = BTreeMap::<Arc<str>, Tokens>::new();
        let paced = Pacing::paced(self.account_statement(&tenant.account));
        let mut market = Market {
            shadow_price: self.pacing.price(&tenant.account, &paced),
            worth_factor: self.pacing.factor(&rules.route),
            ..Market::default()
        };
        let needs = needs::of(&request);
        for model in &models {
            let Some(fleet) = self.parts.fleets.get(&model.name) else { continue };
            if !model.services.contains(&needs.service)
                || !needs.capabilities.iter().all(|need| model.can(*need))
            {
                // It will be refused, so its tokenizer need not read the prompt.
                continue;
            }
            prompts.insert(model.name.clone(), fleet.prompt_tokens(&request));
            market.models.insert(model.name.clone(), fleet.conditions());
        }
        let prior = estimate::estimate(&request, &prompts, &self.parts.calibration);
        let mut demand = prior.clone();
        self.parts.learning.adjust(&mut demand);
        Ok(Considered { request: Arc::new(request), rules, no_vote, prior, demand, market, models, paced })
    }

    /// Plans on what is left and reserves the first offer. Another request may take it in between, or another replica
    /// may hand back what it does not use: then the plan is made once more.
    async fn reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &Considered,
    ) -> Result<(Plan, Reservation), Refusal> {
        match self.try_reserve(tenant, id, on).await {
            Err(Refusal::Spent(Refused::Shortfall(_))) => self.try_reserve(tenant, id, on).await,
            Err(Refusal::Plan(plan::Refusal::DoesNotFit { .. })) if self.parts.ledger.is_shared() => {
                self.parts.ledger.gather(&tenant.account, &about::of(&on.request.extra)).await;
                self.try_reserve(tenant, id, on).await
            }
            reserved => reserved,
        }
    }

    async fn try_reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &Considered,
    ) -> Result<(Plan, Reservation), Refusal> {
        let now = self.parts.ledger.now();
        let (account, about) = (tenant.account.clone(), about::of(&on.request.extra));
        let allowance = self.parts.ledger.allowance(&account, &about, now);
        let mut plan =
            on.plan(&allowance, mixed(id.seed())).map_err(|refusal| self.explained(refusal, &on.models))?;
        if let Some(no_vote) = on.no_vote {
            plan.why = format!("{}; {no_vote}", plan.why);
        }
        let offer = &plan.best;
        let expires = now + self.time(&on.request) + EXPIRY_MARGIN;
        let claim = Claim {
            account,
            id,
            about: About { model: Some(offer.model.clone()), ..about },
            worst: offer.worst,
            step: None,
            prices: self.prices(&offer.model),
            if_abandoned: self.if_abandoned(&offer.model),
            now,
            expires,
        };
        let reservation = self.parts.ledger.obtain(claim).await?;
        Ok((plan, reservation))
    }

    /// What would have been decided, where that is only watched. It reserves nothing; that nothing fits changes nothing.
    fn observe(&self, tenant: &Tenant, id: RequestId, on: &Considered) -> Option<Observed> {
        let watched = on.rules.watched.as_ref()?;
        let (ledger, about) = (&self.parts.ledger, about::of(&on.request.extra));
        let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
        let factor = self.pacing.factor(watched);
        on.watched(&allowance, mixed(id.seed()), factor).as_ref().map(Observed::of)
    }

    /// Where no model can be asked because all are left alone, until when that is so; where there was but one, which.
    pub(super) fn explained(&self, refusal: plan::Refusal, models: &[Arc<Model>]) -> Refusal {
        let fleets = models.iter().filter_map(|model| self.parts.fleets.get(&model.name));
        match (&refusal, fleets.filter_map(|fleet| fleet.rest()).min()) {
            (plan::Refusal::Unhealthy, Some(retry_after)) => Refusal::Resting { retry_after },
            _ => match models {
                [only] => refusal.of_model(&only.name).into(),
                _ => refusal.into(),
            },
        }
    }

    /// Brings the series up to date that tell of targets and of those who wait for them.
    pub fn show_fleets(&self) {
        self.parts.fleets.values().for_each(|fleet| fleet.show());
    }

    /// How long a request may take altogether.
    fn time(&self, request: &Request) -> Duration {
        let most = self.parts.settings.time_max;
        request.budget.deadline.map_or(most, |stated| stated.min(most))
    }

    pub(super) fn prices(&self, model: &str) -> Option<Prices> {
        let tariff = self.parts.catalog.models.get(model).and_then(|model| model.tariff);
        tariff.map(|tariff| tariff.rates.list)
    }

    pub(super) fn if_abandoned(&self, model: &str) -> IfAbandoned {
        let stops = self.parts.catalog.models.get(model).is_some_and(|model| model.stops_billing);
        if stops { IfAbandoned::PostMetered } else { IfAbandoned::PostWhole }
    }

    /// A name of the catalogue as it is; a caller's invention as `other`.
    pub(super) fn route_label(&self, name: &str) -> Arc<str> {
        let catalog = &self.parts.catalog;
        let known = catalog.routes.get_key_value(name).map(|(name, _)| name);
        let known = known.or_else(|| catalog.models.get_key_value(name).map(|(name, _)| name));
        known.cloned().unwrap_or_else(|| OTHER.into())
    }
}

/// The limit under which a request did not fit.
fn limit(refusal: &Refusal) -> Option<&Limit> {
    match refusal {
        Refusal::Spent(Refused::Shortfall(shortfall)) => Some(&shortfall.limit),
        Refusal::Plan(plan::Refusal::DoesNotFit { limit, .. }) => Some(limit),
        _ => None,
    }
}

/// What refused a request, in bounded words.
fn limit_label(refusal: &Refusal) -> String {
    if let Some(limit) = limit(refusal) {
        return limit.kind();
    }
    match refusal {
        Refusal::Plan(refusal) => refusal.code().to_owned(),
        Refusal::UnknownModel(_) | Refusal::SeveralEmbedders(_) => "model".to_owned(),
        Refusal::TooManyChoices { .. } => "choices".to_owned(),
        Refusal::Overloaded { .. } | Refusal::Stopping => "flights".to_owned(),
        Refusal::Resting { .. } => "targets".to_owned(),
        Refusal::Spent(_) | Refusal::Ledger(_) => "ledger".to_owned(),
        Refusal::Idempotency(_) => "idempotency".to_owned(),
        Refusal::Failed(failure) => failure.fault.word().to_owned(),
    }
}
