//! Answering one choice several times, and taking the answer that comes most often.

use std::sync::Arc;

use crate::units::Chance;

use super::odds::Odds;

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

/// What is assumed of several answers to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Over how many different answers wrong ones spread, as if evenly: the fewer, the more often they agree.
    pub wrong: u32,
    /// How much alike answers to one question are, beyond what their chance says: the correlation between two of them
    /// being right. At 0 each is right or wrong by itself; at 1 all are, and a vote gains nothing.
    pub alike: Chance,
}

/// Votes among answers to the same question, where a route has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// The most answers that are made of one choice.
    pub samples_max: u32,
    /// How answers are compared.
    pub compare: Compare,
    /// What is assumed of the answers.
    pub scatter: Scatter,
    odds: Arc<[Odds]>,
}

impl Compare {
    /// What is assumed where nothing else is known. A choice has few wrong options, and some tempt more than others;
    /// wrong numbers repeat, being slips of the same kind; wrong texts hardly do. That a question is hard for one answer
    /// says much about the next.
    pub fn usual(&self) -> Scatter {
        let wrong = match self {
            Compare::Choice => 2,
            Compare::Number => 6,
            Compare::Exact | Compare::Json(_) => 12,
        };
        Scatter { wrong, alike: Chance::new(0.5) }
    }
}

impl Vote {
    /// More answers than this are never made.
    pub const SAMPLES_MAX: u32 = 15;

    /// A vote of at most so many answers.
    pub fn new(samples_max: u32, compare: Compare, scatter: Scatter) -> Vote {
        let samples_max = samples_max.clamp(1, Vote::SAMPLES_MAX);
        let odds = (2..=samples_max).map(|samples| Odds::of(samples, scatter)).collect();
        Vote { samples_max, compare, scatter, odds }
    }

    /// That, on the usual assumptions.
    pub fn usual(samples_max: u32, compare: Compare) -> Vote {
        let scatter = compare.usual();
        Vote::new(samples_max, compare, scatter)
    }

    /// What comes of each size of a vote from two answers on, the smallest first.
    pub fn odds(&self) -> &[Odds] {
        &self.odds
    }
}
