//! A scenario made ready: its models, its tenants' terms, its requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stint_ledger::AccountId;
use stint_types::catalog::{Catalog, Model, Route};
use stint_types::tenant::AccountTerms;
use stint_types::units::{Amount, Chance, Timestamp, Tokens, Window, Zone};

use super::arrivals::ArrivalProcess;
use super::model_server::{self, ModelServer};
use super::population::Population;
use super::scenario::{Scenario, ScenarioError, ScenarioModel, ScenarioRoute, ScenarioTenant, WorkClass};
use super::trace::RequestTrace;
use super::virtual_time::VirtualTime;

/// All that a world depends on, the same for every policy.
#[derive(Debug, Clone)]
pub(super) struct SimulationSetup {
    pub scenario: Scenario,
    /// In the order of their names.
    pub models: Vec<Arc<Model>>,
    /// What serves each of the models.
    pub model_specs: Vec<ScenarioModel>,
    pub route: Route,
    pub terms: Vec<AccountTerms>,
    pub tenants: Vec<AccountId>,
    /// The tightest limit on money of each tenant that has one.
    pub budgets: Vec<Option<TenantBudget>>,
    pub population: Population,
    /// Where the requests were recorded.
    pub trace: Option<Arc<RequestTrace>>,
    pub start: Timestamp,
    /// From the beginning to the last arrival.
    pub length: Duration,
}

/// One tenant's limit on money, where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TenantBudget {
    /// The most in a window, in dollars.
    pub dollars: f64,
    /// Which window.
    pub window: Window,
}

impl SimulationSetup {
    /// A scenario; with the models, the route and the accounts of a configuration, where there is one.
    pub(super) fn new(
        mut scenario: Scenario,
        configured: Option<(&Catalog, &[AccountTerms])>,
        trace: Option<RequestTrace>,
    ) -> Result<SimulationSetup, ScenarioError> {
        let (models, route) = models_and_route(&scenario, configured.map(|(catalog, _)| catalog));
        if models.is_empty() {
            let remedy = "add a [[model]], or name a configuration that has models";
            return Err(ScenarioError::Wrong { what: "nobody answers".into(), remedy });
        }
        if scenario.requests == 0 {
            let remedy = "let requests be above 0";
            return Err(ScenarioError::Wrong { what: "nobody asks".into(), remedy });
        }
        let answerers = model_specs(&scenario.models, &models);
        scenario.events.retain(|turn| models.iter().any(|model| model.name == turn.model));
        let terms = terms(&mut scenario, configured.map_or(&[], |(_, terms)| terms));
        let trace = trace.map(Arc::new);
        if let Some(trace) = &trace {
            use_trace(&mut scenario, trace);
        }
        let mut setup = SimulationSetup {
            budgets: Vec::new(),
            tenants: scenario.tenants.iter().map(|tenant| AccountId::new(tenant.name.clone())).collect(),
            population: Population::new(&scenario, &answerers, trace.clone()),
            start: trace.as_ref().map_or(scenario.start(), |trace| trace.start()),
            length: ArrivalProcess::new(&scenario, trace.clone()).last(scenario.requests),
            trace,
            models,
            model_specs: answerers,
            route,
            terms,
            scenario,
        };
        setup.budgets = (0..setup.tenants.len()).map(|tenant| setup.budget(tenant)).collect();
        Ok(setup)
    }

    /// Lets an event begin, or end: its number, twice. Attempts that are sent away come back.
    pub(super) fn apply_event(&self, hosts: &mut [ModelServer], number: usize) -> Vec<usize> {
        let turn = &self.scenario.events[number / 2];
        let host = hosts.iter_mut().find(|host| host.model.name == turn.model);
        host.map(|host| host.apply_event(turn, number.is_multiple_of(2))).unwrap_or_default()
    }

    /// A tenant's share of the requests.
    pub(super) fn tenant_share(&self, tenant: usize) -> f64 {
        let all: f64 = self.scenario.tenants.iter().map(|tenant| tenant.share.max(0.0)).sum();
        if all > 0.0 { self.scenario.tenants[tenant].share.max(0.0) / all } else { 1.0 }
    }

    /// Which share of a window the run covers.
    pub(super) fn window_coverage(&self, begins: Timestamp, ends: Option<Timestamp>) -> f64 {
        let Some(ends) = ends else { return 1.0 };
        let (first, last) = (begins.max(self.start), ends.min(self.start + self.length));
        let seconds = |from: Timestamp, to: Timestamp| Tokens((to.0 - from.0).max(0).unsigned_abs()).as_f64();
        seconds(first, last) / seconds(begins, ends).max(1.0)
    }

    /// What share of the run is over.
    pub(super) fn elapsed_share(&self, now: VirtualTime) -> f64 {
        now.seconds() / self.length.as_secs_f64().max(1e-9)
    }

    /// A tenant's tightest limit on money.
    fn budget(&self, tenant: usize) -> Option<TenantBudget> {
        let terms = self.terms.iter().find(|terms| terms.account == self.tenants[tenant])?;
        let budgets = terms.limits.iter().filter_map(|limit| match limit.max {
            Amount::Money(money) => Some(TenantBudget { dollars: money.as_dollars(), window: limit.window }),
            _ => None,
        });
        let rate = |budget: &TenantBudget| budget.dollars / self.seconds_in(budget.window);
        budgets.min_by(|one, other| rate(one).total_cmp(&rate(other)))
    }

    /// The dollars a second that each tenant's tightest limit allows.
    pub(super) fn budget_rates(&self) -> Vec<Option<f64>> {
        let pace = |budget: TenantBudget| budget.dollars / self.seconds_in(budget.window);
        self.budgets.iter().map(|budget| budget.map(pace)).collect()
    }

    /// How many seconds a window has; all time, for the run.
    pub(super) fn seconds_in(&self, window: Window) -> f64 {
        match window.bounds(self.start, &Zone::UTC) {
            Some((start, end)) => Duration::from_millis(end.0.abs_diff(start.0)).as_secs_f64(),
            None => self.length.as_secs_f64(),
        }
    }
}

/// The models that may be chosen and the route to them. Answers are no texts here, so nothing is voted on.
fn models_and_route(scenario: &Scenario, catalog: Option<&Catalog>) -> (Vec<Arc<Model>>, Route) {
    let ScenarioRoute { worth, second, explore } = scenario.route;
    let usual = Route {
        worth,
        cost_per_second: second,
        explore: Chance::new(explore),
        ..Route::with_defaults("auto")
    };
    let (mut models, route) = match catalog {
        None => {
            (scenario.models.iter().map(|one| Arc::new(model_server::model(one))).collect::<Vec<_>>(), usual)
        }
        Some(catalog) => {
            let route = catalog.route("auto").unwrap_or(usual);
            let route = Route { vote: None, cascade: false, ..route };
            (catalog.candidates(&route).cloned().collect(), route)
        }
    };
    models.sort_by(|one, other| one.name.cmp(&other.name));
    (models, route)
}

/// Lets the requests be those of a record: as many, and of every kind.
fn use_trace(scenario: &mut Scenario, trace: &RequestTrace) {
    scenario.requests = scenario.requests.min(trace.len()).max(1);
    let missing = trace.rows.iter().map(|row| row.class).collect::<BTreeSet<_>>();
    for task in missing {
        if !scenario.classes.iter().any(|class| class.task == task) {
            let like = scenario.classes.first().cloned();
            scenario.classes.extend(like.map(|like| WorkClass { task, ..like }));
        }
    }
}

/// What serves each model: as the scenario says; of one that it does not know, what it says of the model whose
/// price is nearest.
fn model_specs(known: &[ScenarioModel], models: &[Arc<Model>]) -> Vec<ScenarioModel> {
    let price = |model: &Model| {
        let output =
            model.tariff.map_or(0.0, |tariff| tariff.rates.list.output.per_million_tokens.as_dollars());
        (output + 1e-3).ln()
    };
    let like = |model: &Model| {
        let far = |one: &&ScenarioModel| (price(&model_server::model(one)) - price(model)).abs();
        known.iter().min_by(|one, other| far(one).total_cmp(&far(other))).cloned()
    };
    let of = |model: &Arc<Model>| {
        let own = known.iter().find(|one| one.name == model.name).cloned();
        let answerer = own.or_else(|| like(model)).unwrap_or_else(ScenarioModel::default_model);
        ScenarioModel { name: model.name.clone(), ..answerer }
    };
    models.iter().map(of).collect()
}

/// The accounts: the configuration's, where it has some, with the scenario's shares; else the scenario's.
fn terms(scenario: &mut Scenario, configured: &[AccountTerms]) -> Vec<AccountTerms> {
    let tenant = |name: Arc<str>| ScenarioTenant { name, share: 1.0, limits: Vec::new() };
    if configured.is_empty() {
        if scenario.tenants.is_empty() {
            scenario.tenants.push(tenant("everybody".into()));
        }
        let terms = |tenant: &ScenarioTenant| AccountTerms {
            limits: tenant.limits.iter().flat_map(|limit| limit.limits()).collect(),
            ..AccountTerms::unlimited(AccountId::new(tenant.name.clone()))
        };
        return scenario.tenants.iter().map(terms).collect();
    }
    scenario.tenants.retain(|tenant| configured.iter().any(|terms| terms.account.as_str() == &*tenant.name));
    if scenario.tenants.is_empty() {
        scenario.tenants = configured.iter().map(|terms| tenant(terms.account.as_str().into())).collect();
    }
    configured.to_vec()
}
