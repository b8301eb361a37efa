//! What is known of a request, and what a policy makes of it.

use crate::simulate::policy::SimulationPolicy;
use crate::simulate::population::SimulatedRequest;
use stint_decide::plan::{DrawRule, Exploration, OPENING_QUANTILE, PlanRefusal, PlanRequest};
use stint_types::catalog::{Model, Needs, Plan};
use stint_types::chat::Budget;
use stint_types::units::Chance;

use super::Simulation;

impl Simulation<'_> {
    /// Writes down what is known about a request and about the models now.
    pub(super) fn update_estimates(&mut self, request: &SimulatedRequest) {
        let (population, share) = (&self.setup.population, self.setup.elapsed_share(self.now));
        self.demand.class = population.task(request);
        self.demand.difficulty = population.difficulty(request);
        for (number, demand) in self.demand.models.values_mut().enumerate() {
            *demand = match self.policy {
                SimulationPolicy::Oracle => {
                    population.truth(request, number, self.servers[number].ability(share))
                }
                _ => population.predicted(request, number),
            };
        }
        if self.policy == SimulationPolicy::Stint {
            self.learner.adjust(&mut self.demand);
        }
        let stand = self.servers.iter().zip(self.market.models.values_mut());
        for (number, (host, conditions)) in stand.enumerate() {
            *conditions = population.conditions(request, number, host.conditions(self.now));
        }
        self.market.shadow_price = match self.policy {
            SimulationPolicy::Stint => self.learner.price(request.tenant),
            SimulationPolicy::Oracle => self.oracle_prices[request.tenant],
            _ => 1.0,
        };
    }

    /// Plans it by the world's policy.
    pub(super) fn plan(&self, request: &SimulatedRequest) -> Result<Plan, PlanRefusal> {
        let models: Vec<&Model> = self.servers.iter().map(|host| &*host.model).collect();
        let allowance = self.ledger.allowance(request.tenant, self.now.to_timestamp(self.setup.start));
        let mut dice = self.setup.population.dice(request, 0xd1ce, 0);
        let (floor, nothing) = (self.setup.route.explore, Chance::default());
        let explores = self.policy == SimulationPolicy::Stint
            && (floor > nothing || self.setup.route.uncapped > nothing);
        let explore = explores.then(|| Exploration { seed: dice.next_u64(), rule: DrawRule::Beliefs(floor) });
        let ask = PlanRequest {
            demand: &self.demand,
            models: &models,
            route: &self.setup.route,
            market: &self.market,
            allowance: &allowance,
            budget: &Budget::default(),
            needs: &Needs::default(),
            choices: 1,
            streams: true,
            sticky: None,
            explore,
            opening_quantile: Chance::new(OPENING_QUANTILE),
        };
        self.policy.plan(ask, self.setup.scenario.fixed.thinking, &mut dice)
    }
}
