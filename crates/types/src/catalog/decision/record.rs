//! The record of a decision about one request, and its inputs. Plain data that outlives the request: the decision log, the
//! store and learning all use it. It never contains a word of the request.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::{Chance, Difficulty, EpisodeId, Money, Preference, RequestId, Timestamp, Tokens};

use super::demand::{ModelDemand, TaskClass};
use super::market::ModelConditions;
use super::offer::{Contender, Offer, Plan};
use super::request_traits::RequestTraits;

/// What was decided about one request. Its JSON is what the decision log may have: the members that are private are read, and
/// written by the store alone.
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
    /// What the request looked like, in the numbers that learning goes by. The places of its words are private.
    #[serde(
        serialize_with = "RequestTraits::without_words",
        deserialize_with = "RequestTraits::of_any_version"
    )]
    pub context: RequestTraits,
    /// What success, time and money counted for.
    pub stakes: Stakes,
    /// How many answers were wanted.
    pub choices: u32,
    /// The best offer of each model that could serve it.
    pub candidates: Vec<Candidate>,
    /// The place of the chosen one among them.
    pub chosen: usize,
    /// True if it was drawn, and would not have been chosen by what is believed on average.
    pub explored: bool,
    /// One line on what decided. It may name limits, and so accounts and users: it is private.
    #[serde(default, skip_serializing)]
    pub why: String,
    /// The run that it is a step of, by its caller's name for it: private too.
    #[serde(default, skip_serializing)]
    pub episode: Option<EpisodeId>,
}

/// What success, time and money counted for: with them the value of any outcome can be computed afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stakes {
    /// What a right answer was worth, in dollars.
    pub worth: f64,
    /// What a second of waiting cost, in dollars.
    pub second: f64,
    /// The shadow price of a dollar.
    pub shadow_price: f64,
    /// The caller's preference between success and cost.
    pub preference: Option<Preference>,
    /// The success that the choice had to reach, since its caller stated a preference or a thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_min: Option<Chance>,
}

/// A model's best offer, as it was weighed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Who would do it.
    pub model: Arc<str>,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The solution budget of each choice; known of the chosen offer and those kept to fall back on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solution: Option<Tokens>,
    /// How many answers would be made of each choice at most.
    pub samples: u32,
    /// True for the first step of a cascade.
    pub escalates: bool,
    /// The chance of a right answer as it was predicted before anything was learned online.
    pub success_prior: Chance,
    /// The same by all that was learned until then; by it was chosen.
    pub success: Chance,
    /// The expected cost.
    pub cost: Money,
    /// The most it could cost; known where the solution budget is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Money>,
    /// The expected time, in seconds.
    pub seconds: f64,
    /// What it was worth beyond what it would take, in dollars.
    pub value: f64,
    /// The chance with which it was going to be chosen.
    pub propensity: f64,
    /// How its model stood: its queue and its speeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<ModelConditions>,
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
    /// What a plan weighed, with what it rests on; those of whose model nothing was predicted are left out.
    pub fn of_plan<'a>(
        plan: &Plan,
        predicted: impl Fn(&str) -> Option<(&'a ModelDemand, &'a ModelDemand)>,
    ) -> Vec<Candidate> {
        let kept = std::iter::once(&plan.best).chain(&plan.fallbacks);
        if plan.contenders.is_empty() {
            let weighed = kept.enumerate().map(|(place, offer)| {
                let propensity = if place == 0 { plan.propensity } else { 0.0 };
                (contender(offer, propensity), Some(offer))
            });
            return weighed.filter_map(|(weighed, offer)| candidate(&weighed, offer, &predicted)).collect();
        }
        let offer = |weighed: &Contender| {
            kept.clone().find(|offer| offer.model == weighed.model && offer.thinking == weighed.thinking)
        };
        plan.contenders.iter().filter_map(|weighed| candidate(weighed, offer(weighed), &predicted)).collect()
    }
}

fn contender(offer: &Offer, propensity: f64) -> Contender {
    Contender {
        model: offer.model.clone(),
        thinking: offer.thinking,
        samples: offer.samples,
        escalates: offer.escalate.is_some(),
        success: offer.success,
        cost: offer.cost,
        seconds: offer.seconds,
        value: offer.value,
        propensity,
        conditions: None,
    }
}

fn candidate<'a>(
    weighed: &Contender,
    offer: Option<&Offer>,
    predicted: impl Fn(&str) -> Option<(&'a ModelDemand, &'a ModelDemand)>,
) -> Option<Candidate> {
    let (prior, belief) = predicted(&weighed.model)?;
    Some(Candidate {
        model: weighed.model.clone(),
        thinking: weighed.thinking,
        solution: offer.map(|offer| offer.solution),
        samples: weighed.samples,
        escalates: weighed.escalates,
        success_prior: prior.success(weighed.thinking),
        success: weighed.success,
        cost: weighed.cost,
        worst: offer.map(|offer| offer.worst.money),
        seconds: weighed.seconds,
        value: weighed.value,
        propensity: weighed.propensity,
        conditions: weighed.conditions,
        prior: prior.clone(),
        belief: belief.clone(),
    })
}
