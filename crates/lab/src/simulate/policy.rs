//! Ways to decide, to be compared on the same world.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use stint_decide::plan::{PlanRefusal, PlanRequest, plan};
use stint_types::catalog::Model;
use stint_types::chat::Budget;
use stint_types::units::{SeededRng, Tokens};

/// Who decides. All of them reserve, settle and are refused by the same ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SimulationPolicy {
    /// The plan as it is configured, with what was learned on the way and a price of money that follows the pace.
    Stint,
    /// The same plan on the estimates as they came, learning nothing.
    Unlearned,
    /// The cheapest model that can be asked, thinking as long as it likes.
    Cheapest,
    /// The dearest.
    Dearest,
    /// Any model, with any budget.
    Random,
    /// The plan's choice of a model, with one thinking budget for every request.
    Fixed,
    /// The plan on the truth, with the price of money that in hindsight spends the budget.
    Oracle,
}

/// A word that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no policy {0:?}: write stint, unlearned, cheapest, dearest, random, fixed or oracle, with commas between"
)]
pub struct UnknownPolicy(String);

impl SimulationPolicy {
    /// Every policy.
    pub const ALL: [SimulationPolicy; 7] = [
        SimulationPolicy::Stint,
        SimulationPolicy::Unlearned,
        SimulationPolicy::Cheapest,
        SimulationPolicy::Dearest,
        SimulationPolicy::Random,
        SimulationPolicy::Fixed,
        SimulationPolicy::Oracle,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SimulationPolicy::Stint => "stint",
            SimulationPolicy::Unlearned => "unlearned",
            SimulationPolicy::Cheapest => "cheapest",
            SimulationPolicy::Dearest => "dearest",
            SimulationPolicy::Random => "random",
            SimulationPolicy::Fixed => "fixed",
            SimulationPolicy::Oracle => "oracle",
        }
    }

    /// Plans by this policy. `ask` is as stint would ask; `fixed` is the budget of those that have one.
    pub(super) fn plan(
        self,
        ask: PlanRequest,
        fixed: Tokens,
        dice: &mut SeededRng,
    ) -> Result<stint_types::catalog::Plan, PlanRefusal> {
        let stated = |thinking| Budget { thinking: Some(thinking), ..ask.budget.clone() };
        match self {
            SimulationPolicy::Stint | SimulationPolicy::Unlearned | SimulationPolicy::Oracle => plan(&ask),
            SimulationPolicy::Fixed => plan(&PlanRequest { budget: &stated(fixed), ..ask }),
            SimulationPolicy::Cheapest | SimulationPolicy::Dearest => {
                let mut models = ask.models.to_vec();
                models.sort_by_key(|model| price(model));
                if self == SimulationPolicy::Dearest {
                    models.reverse();
                }
                first(ask, &models, |model| stated(model.thinking_max))
            }
            SimulationPolicy::Random => {
                let mut models = ask.models.to_vec();
                dice.shuffle(&mut models);
                let doublings = dice.below(9);
                let budget = if doublings == 0 { Tokens::ZERO } else { Tokens(64 << doublings) };
                first(ask, &models, |model| stated(budget.min(model.thinking_max)))
            }
        }
    }
}

/// The first model that can serve the request, each with a budget of its own.
fn first(
    ask: PlanRequest,
    models: &[&Model],
    budget: impl Fn(&Model) -> Budget,
) -> Result<stint_types::catalog::Plan, PlanRefusal> {
    let mut refused = PlanRefusal::Unhealthy;
    for model in models {
        match plan(&PlanRequest { models: &[model], budget: &budget(model), ..ask }) {
            Ok(plan) => return Ok(plan),
            Err(refusal) => refused = refusal,
        }
    }
    Err(refused)
}

/// What a written token costs; what has no price comes first.
fn price(model: &Model) -> u64 {
    model.tariff.map_or(0, |tariff| tariff.rates.list.output.per_million_tokens.0)
}

impl fmt::Display for SimulationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SimulationPolicy {
    type Err = UnknownPolicy;

    fn from_str(word: &str) -> Result<SimulationPolicy, UnknownPolicy> {
        let policy = SimulationPolicy::ALL.into_iter().find(|policy| policy.as_str() == word);
        policy.ok_or_else(|| UnknownPolicy(word.to_owned()))
    }
}
