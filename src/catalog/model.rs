//! A model as the operator declared it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::units::{Chance, Money, Price, Tokens};

use super::{Capability, Class};

/// What a model's tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// For the prompt.
    pub input: Price,
    /// For all that is generated: thought, overhead and solution.
    pub output: Price,
}

impl Prices {
    /// The cost of so much prompt and so much output.
    pub fn cost(&self, input: Tokens, output: Tokens) -> Money {
        self.input.cost(input) + self.output.cost(output)
    }
}

/// What closes an unfinished thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOff {
    /// The sentence and the end-of-thinking tag, as text.
    pub text: String,
    /// How many tokens that is at most, the end-of-text token of the answer included: the overhead that is
    /// reserved beside thinking and solution.
    pub overhead: Tokens,
}

/// One word of a model's effort scale.
#[derive(Debug, Clone, PartialEq)]
pub struct EffortLevel {
    /// What the upstream calls it (`reasoning_effort`).
    pub word: String,
    /// How much the model usually thinks at it.
    pub usual: Tokens,
}

/// A model that can be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name that callers use.
    pub name: Arc<str>,
    /// List prices; a model without is refused for keys with a money limit.
    pub prices: Option<Prices>,
    /// Prompt and everything generated together.
    pub context: Tokens,
    /// How its thinking is held.
    pub class: Class,
    /// The most that it can think; 0 for a model that does not think.
    pub thinking_max: Tokens,
    /// The solution budget where the caller states none.
    pub solution_default: Tokens,
    /// What closes a cut thought; for `effort`, only its overhead counts.
    pub hand_off: HandOff,
    /// What it can do beyond text.
    pub capabilities: Vec<Capability>,
    /// The effort scale, lowest first; for the class `effort`.
    pub efforts: Vec<EffortLevel>,
    /// True where whoever serves it stops, and stops billing, when we are gone.
    pub stops_billing: bool,
}

/// An operator's own name for a choice among models.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The name that callers use in place of a model's.
    pub name: Arc<str>,
    /// The models it may choose; all where empty.
    pub models: Vec<Arc<str>>,
    /// The success that the cheapest offer must reach at preference 0.
    pub success_floor: Chance,
    /// What a right answer is worth.
    pub worth: Money,
    /// What a second of waiting costs.
    pub second: Money,
}

/// All models and routes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// By name.
    pub models: BTreeMap<Arc<str>, Arc<Model>>,
    /// By name; `auto` is always among them.
    pub routes: BTreeMap<Arc<str>, Route>,
}

impl Model {
    /// True where the model can do it.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

impl Catalog {
    /// The route of that name; a model's own name is a route to it alone.
    pub fn route(&self, name: &str) -> Option<Route> {
        if let Some(route) = self.routes.get(name) {
            return Some(route.clone());
        }
        let model = self.models.get(name)?;
        let auto = self.routes.get("auto")?;
        Some(Route { name: model.name.clone(), models: vec![model.name.clone()], ..auto.clone() })
    }

    /// The models that a route may choose, in the order of their names.
    pub fn candidates<'a>(&'a self, route: &'a Route) -> impl Iterator<Item = &'a Arc<Model>> {
        self.models.values().filter(|model| route.models.is_empty() || route.models.contains(&model.name))
    }
}
