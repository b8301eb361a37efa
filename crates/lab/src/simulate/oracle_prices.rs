//! The oracle's prices of money: for every tenant the one that, in hindsight, spends its budget.
//!
//! With a price λ on every dollar each request takes its best offer; the higher λ, the less is spent. The price at which
//! a window's requests spend the window's money is the best there is, but for what does not divide evenly: the multiplier of
//! a knapsack. It is found by halving, on some of the tenant's requests.

use std::sync::Arc;

use stint_decide::plan::{OPENING_QUANTILE, PlanRequest, plan};
use stint_types::catalog::{Allowance, Demand, Market, Model, ModelConditions, Needs, RequestTraits};
use stint_types::chat::Budget;
use stint_types::units::{Chance, Tokens};

use super::arrivals::ArrivalProcess;
use super::event_queue::SimulationEvent;
use super::model_server::ModelServer;
use super::population::SimulatedRequest;
use super::setup::SimulationSetup;
use super::simulation::scenario_events;
use super::virtual_time::VirtualTime;

/// How many of a tenant's requests are looked at.
const SAMPLE: u64 = 250;
/// How often the range of prices is halved.
const HALVINGS: u32 = 12;
/// The highest price, in ln.
const HIGHEST: f64 = 12.0;

/// What one request looks like to somebody who knows.
struct SampledRequest<'a> {
    demand: Demand,
    models: Vec<Arc<Model>>,
    market: Market,
    setup: &'a SimulationSetup,
}

/// The price of every tenant's dollar.
pub(super) fn prices(setup: &SimulationSetup) -> Vec<f64> {
    (0..setup.tenants.len()).map(|tenant| price(setup, tenant)).collect()
}

fn price(setup: &SimulationSetup, tenant: usize) -> f64 {
    let Some(budget) = setup.budgets[tenant] else { return 1.0 };
    let seen = sample(setup, tenant);
    let share = setup.tenant_share(tenant);
    let rate = Tokens(setup.scenario.requests).as_f64() / setup.length.as_secs_f64().max(1.0);
    let requests = (rate * share * setup.seconds_in(budget.window)).max(1.0);
    let affordable = budget.dollars / requests;
    if seen.is_empty() || spent(&seen, 1.0) <= affordable {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, HIGHEST);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if spent(&seen, middle.exp()) > affordable { low = middle } else { high = middle }
    }
    high.exp()
}

/// Dollars for a request on average, at a price of money.
fn spent(seen: &[SampledRequest], price: f64) -> f64 {
    let sum: f64 = seen.iter().map(|one| one.cost(price)).sum();
    sum / Tokens(seen.len() as u64).as_f64().max(1.0)
}

/// Some of a tenant's requests, spread over the run, with the prices and abilities of their time.
fn sample(setup: &SimulationSetup, tenant: usize) -> Vec<SampledRequest<'_>> {
    let all = setup.scenario.requests;
    let wanted = Tokens(SAMPLE).as_f64() / setup.tenant_share(tenant).max(1e-6);
    let step = (all / Tokens::round(wanted).0.max(1)).max(1);
    let mut hosts: Vec<ModelServer> = setup
        .model_specs
        .iter()
        .zip(&setup.models)
        .map(|(one, model)| ModelServer::new(one, model.clone()))
        .collect();
    let mut arrivals = ArrivalProcess::new(&setup.scenario, setup.trace.clone());
    let mut turns = scenario_events(setup);
    let mut due = turns.pop();
    let mut seen = Vec::new();
    for number in 0..all {
        let now = arrivals.next();
        if !number.is_multiple_of(step) {
            continue;
        }
        while let Some((_, SimulationEvent::ScenarioEvent(turn))) = due.filter(|(at, _)| *at <= now) {
            setup.apply_event(&mut hosts, turn);
            due = turns.pop();
        }
        let request = setup.population.request(number);
        if request.tenant == tenant {
            seen.push(SampledRequest::of(setup, &hosts, &request, setup.elapsed_share(now)));
        }
    }
    seen
}

impl SampledRequest<'_> {
    fn of<'a>(
        setup: &'a SimulationSetup,
        hosts: &[ModelServer],
        request: &SimulatedRequest,
        share: f64,
    ) -> SampledRequest<'a> {
        let named = |number: usize| setup.models[number].name.clone();
        let truth = |(number, host): (usize, &ModelServer)| {
            (named(number), setup.population.truth(request, number, host.ability(share)))
        };
        let idle = |(number, host): (usize, &ModelServer)| {
            (
                named(number),
                ModelConditions { queue: 0.0, queue_least: 0.0, ..host.conditions(VirtualTime::default()) },
            )
        };
        SampledRequest {
            demand: Demand {
                class: setup.population.task(request),
                difficulty: setup.population.difficulty(request),
                confidence: Chance::new(1.0),
                request: RequestTraits::default(),
                models: hosts.iter().enumerate().map(truth).collect(),
            },
            models: hosts.iter().map(|host| host.model.clone()).collect(),
            market: Market { models: hosts.iter().enumerate().map(idle).collect(), ..Market::default() },
            setup,
        }
    }

    fn cost(&self, price: f64) -> f64 {
        let models: Vec<&Model> = self.models.iter().map(|model| &**model).collect();
        let ask = PlanRequest {
            demand: &self.demand,
            models: &models,
            route: &self.setup.route,
            market: &Market { shadow_price: price, ..self.market.clone() },
            allowance: &Allowance::default(),
            budget: &Budget::default(),
            needs: &Needs::default(),
            choices: 1,
            streams: true,
            sticky: None,
            explore: None,
            opening_quantile: Chance::new(OPENING_QUANTILE),
        };
        plan(&ask).map_or(0.0, |plan| plan.best.cost.as_dollars())
    }
}
