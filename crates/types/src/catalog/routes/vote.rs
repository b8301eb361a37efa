//! Settings of votes: one choice is answered several times, and the most frequent answer is taken.

use std::sync::Arc;

use crate::units::Chance;

use super::odds::{VoteAssumptions, VoteOdds};

/// When two answers are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerComparison {
    /// The last number in it.
    Number,
    /// The letter of an option.
    Choice,
    /// The whole text, but for space around it.
    Exact,
    /// The value at a JSON pointer (RFC 6901) into it.
    Json(Arc<str>),
}

/// How a vote is held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VotePolicy {
    /// How many answers are made side by side.
    pub concurrency: u32,
    /// How tokens are drawn for them where the caller does not say: what is always said alike needs no vote.
    pub temperature: Option<f32>,
    /// The chance that further answers would change the winner at which none is asked for any more. At 0 they are asked
    /// for until it cannot change, or is not worth changing.
    pub stop_probability: Chance,
}

impl Default for VotePolicy {
    fn default() -> VotePolicy {
        VotePolicy { concurrency: 3, temperature: None, stop_probability: Chance::new(0.1) }
    }
}

/// Votes among answers to the same question, where a route has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// The most answers that are made of one choice.
    pub samples_max: u32,
    /// How answers are compared.
    pub compare: AnswerComparison,
    /// What is assumed of the answers.
    pub assumptions: VoteAssumptions,
    /// How it is held.
    pub policy: VotePolicy,
    odds: Arc<[VoteOdds]>,
}

impl AnswerComparison {
    /// What is assumed where nothing else is known. A choice has few wrong options, and some tempt more than others;
    /// wrong numbers repeat, being slips of the same kind; wrong texts hardly do. That a question is hard for one answer
    /// says much about the next.
    pub fn default_assumptions(&self) -> VoteAssumptions {
        let wrong = match self {
            AnswerComparison::Choice => 2,
            AnswerComparison::Number => 6,
            AnswerComparison::Exact | AnswerComparison::Json(_) => 12,
        };
        VoteAssumptions { distinct_wrong: wrong, correlation: Chance::new(0.5) }
    }
}

impl Vote {
    /// More answers than this are never made.
    pub const SAMPLES_MAX: u32 = 15;

    /// A vote of at most so many answers.
    pub fn new(samples_max: u32, compare: AnswerComparison, assumptions: VoteAssumptions) -> Vote {
        let samples_max = samples_max.clamp(1, Vote::SAMPLES_MAX);
        let odds = (2..=samples_max).map(|samples| VoteOdds::of(samples, assumptions)).collect();
        Vote { samples_max, compare, assumptions, policy: VotePolicy::default(), odds }
    }

    /// That, on the usual assumptions.
    pub fn with_default_assumptions(samples_max: u32, compare: AnswerComparison) -> Vote {
        let assumptions = compare.default_assumptions();
        Vote::new(samples_max, compare, assumptions)
    }

    /// The same, held like that.
    #[must_use]
    pub fn with_policy(self, poll: VotePolicy) -> Vote {
        Vote { policy: poll, ..self }
    }

    /// What comes of each size of a vote from two answers on, the smallest first.
    pub fn odds(&self) -> &[VoteOdds] {
        &self.odds
    }
}
