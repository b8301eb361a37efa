//! Ways to serve a demand, priced.

use std::sync::Arc;

use crate::units::{Chance, Money, Tokens};

use super::Class;

/// The most that an offer can take, for all choices together: what is reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorstCase {
    /// In money; nothing for a model without a price.
    pub money: Money,
    /// In thinking tokens.
    pub thinking: Tokens,
}

/// One way to serve a demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Who does it.
    pub model: Arc<str>,
    /// How the budgets are held.
    pub class: Class,
    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub resume: Option<Class>,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The solution budget of each choice.
    pub solution: Tokens,
    /// What is set aside beside them, for tags, hand-off and end of text.
    pub overhead: Tokens,
    /// True where a second try is reserved, for an answer that a hidden thought left no room for.
    pub rescue: bool,
    /// The effort word to send, for the class `effort`.
    pub effort: Option<String>,
    /// How many answers are made of each choice at most, to be compared by vote; 1 where there is no vote.
    pub samples: u32,
    /// Who is asked next where the answers to this offer do not agree: the second step of a cascade.
    pub escalate: Option<Arc<Offer>>,
    /// The predicted chance of a right answer.
    pub success: Chance,
    /// The expected cost of all choices.
    pub cost: Money,
    /// The most it can take.
    pub worst: WorstCase,
    /// The expected time to the whole answer, in seconds.
    pub seconds: f64,
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
    /// One line on what decided.
    pub why: String,
}
