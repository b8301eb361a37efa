//! What is known of a request, and what a policy makes of it.

use crate::catalog::{Model, Needs, Plan};
use crate::chat::Budget;
use crate::learn::Context;
use crate::plan::{Ask, Explore, OPENING_QUANTILE, Refusal};
use crate::simulate::policy::Policy;
use crate::simulate::population::Request;
use crate::units::Chance;

use super::World;

impl World<'_> {
    /// Writes down what is known about a request and about the models now.
    pub(super) fn look(&mut self, request: &Request) -> Context {
        let (population, share) = (&self.setting.population, self.setting.share(self.now));
        self.demand.class = population.task(request);
        self.demand.difficulty = population.difficulty(request);
        for (number, demand) in self.demand.models.values_mut().enumerate() {
            *demand = match self.policy {
                Policy::Oracle => population.truth(request, number, self.hosts[number].ability(share)),
                _ => population.told(request, number),
            };
        }
        let context = Context::of(&self.demand);
        if self.policy == Policy::Stint {
            self.learner.adjust(&mut self.demand);
        }
        for (host, conditions) in self.hosts.iter().zip(self.market.models.values_mut()) {
            *conditions = host.conditions(self.now);
        }
        self.market.shadow_price = match self.policy {
            Policy::Stint => self.learner.price(request.tenant),
            Policy::Oracle => self.prices[request.tenant],
            _ => 1.0,
        };
        context
    }

    /// Plans it by the world's policy.
    pub(super) fn plan(&self, request: &Request) -> Result<Plan, Refusal> {
        let models: Vec<&Model> = self.hosts.iter().map(|host| &*host.model).collect();
        let allowance = self.bank.allowance(request.tenant, self.now.on_calendar(self.setting.start));
        let mut dice = self.setting.population.dice(request, 0xd1ce, 0);
        let (floor, nothing) = (self.setting.route.explore, Chance::default());
        let explores =
            self.policy == Policy::Stint && (floor > nothing || self.setting.route.uncapped > nothing);
        let explore = explores.then(|| Explore { seed: dice.bits(), floor });
        let ask = Ask {
            demand: &self.demand,
            models: &models,
            route: &self.setting.route,
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
        self.policy.plan(ask, self.setting.scenario.fixed.thinking, &mut dice)
    }
}
