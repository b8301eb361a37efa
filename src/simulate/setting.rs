//! A scenario made ready: its models, its tenants' terms, its requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{Catalog, Model, Route};
use crate::ledger::AccountId;
use crate::tenant::Terms;
use crate::units::{Amount, Chance, Timestamp, Tokens, Window, Zone};

use super::arrivals::Arrivals;
use super::host::{self, Host};
use super::moment::Moment;
use super::population::Population;
use super::scenario::{Answerer, Asker, Scenario, ScenarioError, Work, Worth};
use super::trace::Trace;

/// All that a world depends on, the same for every policy.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub scenario: Scenario,
    /// In the order of their names.
    pub models: Vec<Arc<Model>>,
    /// What serves each of the models.
    pub answerers: Vec<Answerer>,
    pub route: Route,
    pub terms: Vec<Terms>,
    pub tenants: Vec<AccountId>,
    /// The tightest limit on money of each tenant that has one.
    pub budgets: Vec<Option<Budget>>,
    pub population: Population,
    /// Where the requests were recorded.
    pub trace: Option<Arc<Trace>>,
    pub start: Timestamp,
    /// From the beginning to the last arrival.
    pub length: Duration,
}

/// One tenant's limit on money, where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Budget {
    /// The most in a window, in dollars.
    pub dollars: f64,
    /// Which window.
    pub window: Window,
}

impl Setting {
    /// A scenario; with the models, the route and the accounts of a configuration, where there is one.
    pub(super) fn new(
        mut scenario: Scenario,
        configured: Option<(&Catalog, &[Terms])>,
        trace: Option<Trace>,
    ) -> Result<Setting, ScenarioError> {
        let (models, route) = choices(&scenario, configured.map(|(catalog, _)| catalog));
        if models.is_empty() {
            let remedy = "add a [[model]], or name a configuration that has models";
            return Err(ScenarioError::Wrong { what: "nobody answers".into(), remedy });
        }
        if scenario.requests == 0 {
            let remedy = "let requests be above 0";
            return Err(ScenarioError::Wrong { what: "nobody asks".into(), remedy });
        }
        let answerers = described(&scenario.models, &models);
        scenario.events.retain(|turn| models.iter().any(|model| model.name == turn.model));
        let terms = terms(&mut scenario, configured.map_or(&[], |(_, terms)| terms));
        let trace = trace.map(Arc::new);
        if let Some(trace) = &trace {
            recorded(&mut scenario, trace);
        }
        let mut setting = Setting {
            budgets: Vec::new(),
            tenants: scenario.tenants.iter().map(|asker| AccountId::new(asker.name.clone())).collect(),
            population: Population::new(&scenario, &answerers, trace.clone()),
            start: trace.as_ref().map_or(scenario.start(), |trace| trace.start()),
            length: Arrivals::new(&scenario, trace.clone()).last(scenario.requests),
            trace,
            models,
            answerers,
            route,
            terms,
            scenario,
        };
        setting.budgets = (0..setting.tenants.len()).map(|tenant| setting.budget(tenant)).collect();
        Ok(setting)
    }

    /// Lets an event begin, or end: its number, twice. Whoever is sent away comes back.
    pub(super) fn turn(&self, hosts: &mut [Host], number: usize) -> Vec<usize> {
        let turn = &self.scenario.events[number / 2];
        let host = hosts.iter_mut().find(|host| host.model.name == turn.model);
        host.map(|host| host.turn(turn, number.is_multiple_of(2))).unwrap_or_default()
    }

    /// A tenant's share of the requests.
    pub(super) fn share_of(&self, tenant: usize) -> f64 {
        let all: f64 = self.scenario.tenants.iter().map(|asker| asker.share.max(0.0)).sum();
        if all > 0.0 { self.scenario.tenants[tenant].share.max(0.0) / all } else { 1.0 }
    }

    /// Which share of a window the run covers.
    pub(super) fn covered(&self, begins: Timestamp, ends: Option<Timestamp>) -> f64 {
        let Some(ends) = ends else { return 1.0 };
        let (first, last) = (begins.max(self.start), ends.min(self.start + self.length));
        let seconds = |from: Timestamp, to: Timestamp| Tokens((to.0 - from.0).max(0).unsigned_abs()).as_f64();
        seconds(first, last) / seconds(begins, ends).max(1.0)
    }

    /// What share of the run is over.
    pub(super) fn share(&self, now: Moment) -> f64 {
        now.seconds() / self.length.as_secs_f64().max(1e-9)
    }

    /// A tenant's tightest limit on money.
    fn budget(&self, tenant: usize) -> Option<Budget> {
        let terms = self.terms.iter().find(|terms| terms.account == self.tenants[tenant])?;
        let budgets = terms.limits.iter().filter_map(|limit| match limit.max {
            Amount::Money(money) => Some(Budget { dollars: money.as_dollars(), window: limit.window }),
            _ => None,
        });
        let rate = |budget: &Budget| budget.dollars / self.seconds_in(budget.window);
        budgets.min_by(|one, other| rate(one).total_cmp(&rate(other)))
    }

    /// The dollars a second that each tenant's tightest limit allows.
    pub(super) fn paces(&self) -> Vec<Option<f64>> {
        let pace = |budget: Budget| budget.dollars / self.seconds_in(budget.window);
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
fn choices(scenario: &Scenario, catalog: Option<&Catalog>) -> (Vec<Arc<Model>>, Route) {
    let Worth { worth, second, explore } = scenario.route;
    let usual = Route { worth, second, explore: Chance::new(explore), ..Route::usual("auto") };
    let (mut models, route) = match catalog {
        None => (scenario.models.iter().map(|one| Arc::new(host::model(one))).collect::<Vec<_>>(), usual),
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
fn recorded(scenario: &mut Scenario, trace: &Trace) {
    scenario.requests = scenario.requests.min(trace.len()).max(1);
    let missing = trace.rows.iter().map(|row| row.class).collect::<BTreeSet<_>>();
    for task in missing {
        if !scenario.classes.iter().any(|class| class.task == task) {
            let like = scenario.classes.first().cloned();
            scenario.classes.extend(like.map(|like| Work { task, ..like }));
        }
    }
}

/// What serves each model: as the scenario says; of one that it does not know, what it says of the model whose
/// price is nearest.
fn described(known: &[Answerer], models: &[Arc<Model>]) -> Vec<Answerer> {
    let price = |model: &Model| {
        let output =
            model.tariff.map_or(0.0, |tariff| tariff.rates.list.output.per_million_tokens.as_dollars());
        (output + 1e-3).ln()
    };
    let like = |model: &Model| {
        let far = |one: &&Answerer| (price(&host::model(one)) - price(model)).abs();
        known.iter().min_by(|one, other| far(one).total_cmp(&far(other))).cloned()
    };
    let of = |model: &Arc<Model>| {
        let own = known.iter().find(|one| one.name == model.name).cloned();
        let answerer = own.or_else(|| like(model)).unwrap_or_else(Answerer::usual);
        Answerer { name: model.name.clone(), ..answerer }
    };
    models.iter().map(of).collect()
}

/// The accounts: the configuration's, where it has some, with the scenario's shares; else the scenario's.
fn terms(scenario: &mut Scenario, configured: &[Terms]) -> Vec<Terms> {
    let asker = |name: Arc<str>| Asker { name, share: 1.0, limits: Vec::new() };
    if configured.is_empty() {
        if scenario.tenants.is_empty() {
            scenario.tenants.push(asker("everybody".into()));
        }
        let terms = |asker: &Asker| Terms {
            limits: asker.limits.iter().flat_map(|limit| limit.limits()).collect(),
            ..Terms::unlimited(AccountId::new(asker.name.clone()))
        };
        return scenario.tenants.iter().map(terms).collect();
    }
    scenario.tenants.retain(|asker| configured.iter().any(|terms| terms.account.as_str() == &*asker.name));
    if scenario.tenants.is_empty() {
        scenario.tenants = configured.iter().map(|terms| asker(terms.account.as_str().into())).collect();
    }
    configured.to_vec()
}
