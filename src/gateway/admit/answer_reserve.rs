//! How much money an episode must keep for its end: the price of a final answer.

use stint_decide::plan;
use stint_types::catalog::Allowance;
use stint_types::chat::EpisodeLimits;
use stint_types::units::Money;

use super::plan_inputs::PlanInputs;

impl PlanInputs {
    /// What an answer in today's context hardly exceeds, by the cheapest model, though no more than half of the episode's money where a
    /// usual one fits; nothing if that is not limited, or no model can serve.
    pub(crate) fn answer_reserve(&self, limits: &EpisodeLimits) -> Money {
        let Some(limit) = limits.cost else { return Money::ZERO };
        let cost = |ask: &plan::PlanRequest| plan::answer_cost(ask, Money(limit.0 / 2));
        self.ask(&Allowance::default(), 0, cost).unwrap_or_default()
    }
}
