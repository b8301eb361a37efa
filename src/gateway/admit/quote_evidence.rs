//! What a quote rests on: what was counted in the request, and what is known of each model.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::gateway::state::GatewayState;
use stint_decide::estimate;
use stint_types::catalog::{AbilityGuess, AbilityLevel, Demand, Features};

use super::plan_inputs::PlanInputs;

/// What the estimate of a quote rests on.
#[derive(Debug)]
pub struct QuoteEvidence {
    /// What was counted in the question.
    pub features: Features,
    /// What was predicted before anything was learned from outcomes.
    pub prior: Demand,
    /// By model.
    pub levels: BTreeMap<Arc<str>, ModelLevels>,
}

/// How able a model is taken to be at work of a request's class.
#[derive(Debug)]
pub struct ModelLevels {
    /// From where that is known.
    pub source: LevelSource,
    /// After a finished thought; nothing for a model that does not think, or one that was fitted on answers of its own.
    pub thinking: Option<AbilityLevel>,
    /// Without a thought.
    pub plain: Option<AbilityLevel>,
    /// How many of its outcomes and judgements this process has learned from.
    pub observations: i64,
}

/// From where a model's level is known.
#[derive(Debug, PartialEq, Eq)]
pub enum LevelSource {
    /// Coefficients were fitted on its own answers.
    Fitted,
    /// The operator or the catalogue says it.
    Catalog,
    /// It is guessed.
    Guessed(AbilityGuess),
}

impl QuoteEvidence {
    pub(super) fn of(state: &GatewayState, inputs: &PlanInputs) -> QuoteEvidence {
        let levels = |name: &Arc<str>| (name.clone(), ModelLevels::of(state, inputs, name));
        QuoteEvidence {
            features: estimate::request_features(&inputs.original),
            prior: inputs.prior.clone(),
            levels: inputs.demand.models.keys().map(levels).collect(),
        }
    }
}

impl ModelLevels {
    fn of(state: &GatewayState, inputs: &PlanInputs, name: &Arc<str>) -> ModelLevels {
        let (parts, class) = (&state.parts, inputs.demand.class);
        let ability = parts.calibration.abilities.get(name);
        let guess = parts.catalog.models.get(name).and_then(|model| model.ability_guess.clone());
        let is_fitted = parts.calibration.models.contains_key(name);
        let ability = ability.filter(|_| !is_fitted);
        ModelLevels {
            source: match guess {
                _ if is_fitted => LevelSource::Fitted,
                Some(guess) => LevelSource::Guessed(guess),
                None if ability.is_some() => LevelSource::Catalog,
                None => LevelSource::Guessed(AbilityGuess::Nothing),
            },
            thinking: ability.and_then(|known| known.thinking).map(|levels| levels.of(class)),
            plain: ability.map(|known| known.plain.of(class)),
            observations: parts.metrics.learning.observations.with_label_values(&[&**name]).get(),
        }
    }
}
