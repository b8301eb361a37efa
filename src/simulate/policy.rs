//! Ways to decide, to be compared on the same world.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::catalog::Model;
use crate::chat::Budget;
use crate::plan::{Ask, Refusal, plan};
use crate::units::{Dice, Tokens};

/// Who decides. All of them reserve, settle and are refused by the same ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
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

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 7] = [
        Policy::Stint,
        Policy::Unlearned,
        Policy::Cheapest,
        Policy::Dearest,
        Policy::Random,
        Policy::Fixed,
        Policy::Oracle,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Policy::Stint => "stint",
            Policy::Unlearned => "unlearned",
            Policy::Cheapest => "cheapest",
            Policy::Dearest => "dearest",
            Policy::Random => "random",
            Policy::Fixed => "fixed",
            Policy::Oracle => "oracle",
        }
    }

    /// Plans by this policy. `ask` is as stint would ask; `fixed` is the budget of those that have one.
    pub(super) fn plan(
        self,
        ask: Ask,
        fixed: Tokens,
        dice: &mut Dice,
    ) -> Result<crate::catalog::Plan, Refusal> {
        let stated = |thinking| Budget { thinking: Some(thinking), ..ask.budget.clone() };
        match self {
            Policy::Stint | Policy::Unlearned | Policy::Oracle => plan(&ask),
            Policy::Fixed => plan(&Ask { budget: &stated(fixed), ..ask }),
            Policy::Cheapest | Policy::Dearest => {
                let mut models = ask.models.to_vec();
                models.sort_by_key(|model| price(model));
                if self == Policy::Dearest {
                    models.reverse();
                }
                first(ask, &models, |model| stated(model.thinking_max))
            }
            Policy::Random => {
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
    ask: Ask,
    models: &[&Model],
    budget: impl Fn(&Model) -> Budget,
) -> Result<crate::catalog::Plan, Refusal> {
    let mut refused = Refusal::Unhealthy;
    for model in models {
        match plan(&Ask { models: &[model], budget: &budget(model), ..ask }) {
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

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(word: &str) -> Result<Policy, UnknownPolicy> {
        let policy = Policy::ALL.into_iter().find(|policy| policy.word() == word);
        policy.ok_or_else(|| UnknownPolicy(word.to_owned()))
    }
}
