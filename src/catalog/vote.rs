//! Answering one choice several times, and taking the answer that comes most often.

use std::sync::Arc;

use crate::units::Chance;

/// How two answers are told to be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The last number in it.
    Number,
    /// The letter of an option.
    Choice,
    /// The whole text, but for space around it.
    Exact,
    /// The value at a JSON pointer (RFC 6901) into it.
    Json(Arc<str>),
}

/// Votes among answers to the same question, where a route has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// The most answers that are made of one choice.
    pub samples_max: u32,
    /// How answers are compared.
    pub compare: Compare,
    /// Over how many different answers wrong ones spread, as if evenly: the fewer, the more often they agree.
    pub wrong: u32,
    /// How much alike answers to one question are, beyond what their chance says: the correlation between two of them
    /// being right. At 0 each is right or wrong by itself; at 1 all are, and a vote gains nothing.
    pub alike: Chance,
    /// How many of them are made side by side.
    pub at_once: u32,
    /// How tokens are drawn for them where the caller does not say: what is always said alike needs no vote.
    pub temperature: Option<f32>,
    /// The chance that further answers would change the winner at which none is asked for any more. At 0 they are asked
    /// for until it cannot change, or is not worth changing.
    pub doubt: Chance,
    /// The share of the answers that the winner must have for a cascade to end with it; below it the next model is asked.
    pub agreement: Chance,
}

impl Compare {
    /// Over how many different answers wrong ones usually spread: a choice has few wrong options, and some tempt
    /// more than others; wrong numbers repeat, being slips of the same kind; wrong texts hardly do.
    pub fn usual_wrong(&self) -> u32 {
        match self {
            Compare::Choice => 2,
            Compare::Number => 6,
            Compare::Exact | Compare::Json(_) => 12,
        }
    }
}

impl Vote {
    /// More answers than this are never made.
    pub const SAMPLES_MAX: u32 = 15;

    /// A vote of at most `samples_max` answers, on the usual assumptions.
    pub fn usual(samples_max: u32, compare: Compare) -> Vote {
        let wrong = compare.usual_wrong();
        let samples_max = samples_max.clamp(1, Vote::SAMPLES_MAX);
        Vote {
            samples_max,
            compare,
            wrong,
            alike: Chance::new(0.5),
            at_once: 3,
            temperature: None,
            doubt: Chance::new(0.02),
            agreement: Chance::new(0.5),
        }
    }
}
