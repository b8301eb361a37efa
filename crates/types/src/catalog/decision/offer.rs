//! `Offer`: one priced way to serve a demand.

use std::ops::{Add, Mul};
use std::sync::Arc;

use crate::catalog::models::EnforcementClass;
use crate::units::{Chance, Money, Tokens};

use super::market::ModelConditions;
use super::usage::LimitedBy;

/// The most that an offer can take, for all choices together: what is reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorstCase {
    /// In money; nothing for a model without a price.
    pub money: Money,
    /// In thinking tokens.
    pub thinking: Tokens,
}

impl Add for WorstCase {
    type Output = WorstCase;
    fn add(self, other: WorstCase) -> WorstCase {
        WorstCase { money: self.money + other.money, thinking: self.thinking + other.thinking }
    }
}

/// That of so many answers.
impl Mul<u32> for WorstCase {
    type Output = WorstCase;
    fn mul(self, times: u32) -> WorstCase {
        WorstCase { money: self.money * times.into(), thinking: self.thinking * times.into() }
    }
}

/// How far an answer may go in further calls, where money alone limits the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuationLimit {
    /// The most that all of it may take.
    pub max: Tokens,
    /// Who says so.
    pub by: LimitedBy,
}

/// One way to serve a demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Who does it.
    pub model: Arc<str>,
    /// How the budgets are held.
    pub class: EnforcementClass,
    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub resume: Option<EnforcementClass>,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The most that each choice's answer may take.
    pub solution: Tokens,
    /// Who says so.
    pub solution_by: LimitedBy,
    /// True if it may take besides what its thought leaves: both stand under one limit.
    pub answer_takes_rest: bool,
    /// How much of it is set aside at first; the rest is extended while it streams.
    pub opening: Tokens,
    /// How far it may continue in further calls, each of them reserved before it is sent. `None` if it is not continued.
    pub continuation: Option<ContinuationLimit>,
    /// Whether a limit is sent to an upstream that needs none: only where somebody stated one.
    pub tells_limit: bool,
    /// What is set aside beside them, for tags, hand-off and end of text.
    pub overhead: Tokens,
    /// True if a second try is reserved, for an answer that a hidden thought left no room for.
    pub rescue: bool,
    /// The effort word to send, for the class `effort`.
    pub effort: Option<String>,
    /// How many answers are made of each choice at most, to be compared by vote; 1 where there is no vote. First as many
    /// as [`Offer::majority`] says, side by side, then one by one until the leader cannot be caught.
    pub samples: u32,
    /// Who is asked next where no answer to this offer reaches the majority: the second step of a cascade. Success, cost,
    /// worst case and time here are of both steps together, those in it of the second alone.
    pub escalate: Option<Arc<Offer>>,
    /// The predicted chance of a right answer.
    pub success: Chance,
    /// The expected cost of all choices.
    pub cost: Money,
    /// The most it can take.
    pub worst: WorstCase,
    /// The expected time to the whole answer, in seconds; 0 for a model that was never measured.
    pub seconds: f64,
    /// For such a model what is guessed instead, as under deadlines; of a cascade that of its first step.
    pub seconds_guess: Option<f64>,
    /// worth·success − λ·cost − ν·time, in dollars, at the route's own worth; a stated preference weighs success
    /// otherwise.
    pub value: f64,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The best offer: it is reserved and run.
    pub best: Offer,
    /// Offers of other models, best first, for when that one fails.
    pub fallbacks: Vec<Offer>,
    /// The chance with which this best offer was chosen: 1 where nothing is explored.
    pub propensity: f64,
    /// Every model that could have served, in the order of the candidates, with its best offer: for the decision log.
    pub contenders: Vec<Contender>,
    /// The success that it had to reach because its caller stated a preference or a thought.
    pub success_min: Option<Chance>,
    /// One line on what decided.
    pub why: String,
}

/// One model's best offer, and the chance with which it was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// The model.
    pub model: Arc<str>,
    /// The thinking budget.
    pub thinking: Tokens,
    /// How many answers at most.
    pub samples: u32,
    /// True for the first step of a cascade.
    pub escalates: bool,
    /// The predicted chance of a right answer.
    pub success: Chance,
    /// The expected cost.
    pub cost: Money,
    /// The expected time, in seconds.
    pub seconds: f64,
    /// What it is worth beyond what it takes, in dollars.
    pub value: f64,
    /// The chance with which it was chosen; of all of them, 1 altogether.
    pub propensity: f64,
    /// How the model stood, where that was weighed.
    pub conditions: Option<ModelConditions>,
}

impl Plan {
    /// True if another model was likelier to be chosen: a draw decided otherwise.
    pub fn is_less_likely(&self) -> bool {
        self.contenders.iter().any(|other| other.propensity > self.propensity)
    }
}

impl Offer {
    /// How many equal answers are more than half of all.
    pub fn majority(&self) -> u32 {
        self.samples / 2 + 1
    }
}
