//! What was decided about one request, and on what grounds. Plain data, which outlives the request: the decision log, the
//! store and learning all have it. It never holds a word of the request.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::{Chance, Difficulty, Money, Preference, RequestId, Timestamp, Tokens};

use super::{Class, ModelDemand, Offer, TaskClass};

/// What was decided about one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The request.
    pub id: RequestId,
    /// When it was decided.
    pub at: Timestamp,
    /// The route or model that was asked for, by its name in the catalogue.
    pub route: Arc<str>,
    /// Which way of choosing it was.
    pub policy: Arc<str>,
    /// What kind of work it looked like.
    pub class: TaskClass,
    /// How hard it looked.
    pub difficulty: Difficulty,
    /// How sure the estimate was.
    pub confidence: Chance,
    /// What success, time and money counted for.
    pub stakes: Stakes,
    /// How many answers were wanted.
    pub choices: u32,
    /// The best offer of each model that could serve it.
    pub candidates: Vec<Candidate>,
    /// The place of the chosen one among them.
    pub chosen: usize,
    /// True where it was drawn, and would not have been chosen by what is believed on average.
    pub explored: bool,
    /// One line on what decided.
    pub why: String,
}

/// What success, time and money counted for: with them the value of any outcome can be told afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stakes {
    /// What a right answer was worth, in dollars.
    pub worth: f64,
    /// What a second of waiting cost, in dollars.
    pub second: f64,
    /// The shadow price of a dollar.
    pub shadow_price: f64,
    /// What the caller said of success against cost.
    pub preference: Option<Preference>,
}

/// A model's best offer, as it was weighed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Who would do it.
    pub model: Arc<str>,
    /// How its budgets would be held.
    pub enforced: Class,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The solution budget of each choice.
    pub solution: Tokens,
    /// How many answers would be made of each choice at most.
    pub samples: u32,
    /// The chance of a right answer as it was predicted before anything was learned online.
    pub success_prior: Chance,
    /// The same by all that was learned until then; by it was chosen.
    pub success: Chance,
    /// The expected cost.
    pub cost: Money,
    /// The most it could cost.
    pub worst: Money,
    /// The expected time.
    pub seconds: f64,
    /// What it was worth, in dollars.
    pub value: f64,
    /// The chance with which it was going to be chosen.
    pub propensity: f64,
    /// All that was predicted of the model before anything was learned online; other budgets can be weighed by it.
    pub prior: ModelDemand,
    /// The same by all that was learned until then.
    pub belief: ModelDemand,
}

impl Decision {
    /// The offer that was chosen.
    pub fn choice(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen)
    }

    /// What was weighed of a model.
    pub fn of_model(&self, model: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| &*candidate.model == model)
    }

    /// By how much the best offer, as far as one believes on average, was better than the chosen one, in dollars.
    pub fn regret(&self) -> f64 {
        let best = self.candidates.iter().map(|candidate| candidate.value).fold(f64::MIN, f64::max);
        self.choice().map_or(0.0, |chosen| (best - chosen.value).max(0.0))
    }
}

impl Candidate {
    /// An offer and what it rests on.
    pub fn new(offer: &Offer, propensity: f64, prior: ModelDemand, belief: ModelDemand) -> Candidate {
        Candidate {
            model: offer.model.clone(),
            enforced: offer.class,
            thinking: offer.thinking,
            solution: offer.solution,
            samples: offer.samples,
            success_prior: prior.success(offer.thinking),
            success: offer.success,
            cost: offer.cost,
            worst: offer.worst.money,
            seconds: offer.seconds,
            value: offer.value,
            propensity,
            prior,
            belief,
        }
    }
}
