//! What all models' outcomes together say of the levels of each: of its success, and of the lengths of its thoughts and answers.
//!
//! [`super::shared_belief`] has the weights that all models share. Here are the levels that families share besides, and lengths.

use stint_types::catalog::LengthTails;

use super::length_tails::{self, TailSums};
use super::level_pool::{LevelEvidence, LevelPool, LevelVariances};

/// How far the logit of success lies from the prediction and what all models share: what a family has in common, and a model
/// besides.
const SUCCESS_VARIANCES: LevelVariances = LevelVariances { all: 1e-6, family: 0.15, own: 0.15 };
/// How far a level of thoughts lies from the prediction, in the prior's sigma squared: nearly half of the variance that is
/// predicted where a model is not known.
const THOUGHT_VARIANCES: LevelVariances = LevelVariances { all: 0.14, family: 0.1, own: 0.19 };
/// The same of answers, of the logarithm of how many times as long they are.
const ANSWER_VARIANCES: LevelVariances = LevelVariances { all: 0.06, family: 0.06, own: 0.12 };

/// What one model's outcomes say to the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ModelEvidence {
    /// By how much the logit of its success is higher.
    pub success: LevelEvidence,
    /// What its lengths say.
    pub lengths: LengthEvidence,
}

/// What one model's lengths say to the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LengthEvidence {
    /// By how many of the prior's sigma its thoughts are longer.
    pub thought: LevelEvidence,
    /// The logarithm of how many times as long as predicted its answers are.
    pub answer: LevelEvidence,
    /// How far out its lengths were.
    pub tails: TailSums,
}

/// All models' levels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharedLevels {
    success: LevelPool,
    /// Of thoughts.
    pub thoughts: LevelPool,
    /// Of answers.
    pub answers: LevelPool,
    /// How far out lengths were.
    pub tails: TailSums,
    /// The same of a model that nobody has asked: where its thoughts were not measured beforehand, and where they were.
    pub usual_tails: [LengthTails; 2],
}

impl ModelEvidence {
    /// Of a model without outcomes.
    const NONE: ModelEvidence = ModelEvidence {
        success: LevelEvidence::NONE,
        lengths: LengthEvidence {
            thought: LevelEvidence::NONE,
            answer: LevelEvidence::NONE,
            tails: [0.0; length_tails::SUMS],
        },
    };
}

impl SharedLevels {
    /// Nothing learned.
    pub(super) fn new() -> SharedLevels {
        SharedLevels {
            success: LevelPool::new(SUCCESS_VARIANCES),
            thoughts: LevelPool::new(THOUGHT_VARIANCES),
            answers: LevelPool::new(ANSWER_VARIANCES),
            tails: [0.0; length_tails::SUMS],
            usual_tails: [LengthTails::default(); 2],
        }
    }

    /// True if no model has an outcome.
    pub(super) fn is_empty(&self) -> bool {
        self.thoughts.is_empty()
    }

    /// Puts what a model's outcomes say now in the place of what they said before.
    pub(super) fn replace(&mut self, model: &str, before: Option<&ModelEvidence>, now: &ModelEvidence) {
        let before = before.unwrap_or(&ModelEvidence::NONE);
        self.success.replace(model, before.success, now.success);
        let (before, now) = (&before.lengths, &now.lengths);
        self.thoughts.replace(model, before.thought, now.thought);
        self.answers.replace(model, before.answer, now.answer);
        for (sum, (before, now)) in self.tails.iter_mut().zip(before.tails.iter().zip(&now.tails)) {
            *sum = (*sum + now - before).max(0.0);
        }
        self.usual_tails = length_tails::tails(&self.tails, None);
    }

    /// By how much the logit of a model's success is higher for its family's sake, beyond what all models share. It counts the
    /// less, the surer the model's own prediction is (`variance`).
    pub(super) fn family_level(&self, model: &str, own: LevelEvidence, shared: f64, variance: f64) -> f64 {
        let LevelVariances { family, own: apart, .. } = SUCCESS_VARIANCES;
        let prior = self.success.prior(model, own);
        let known = (1.0 - (prior.variance - apart) / family).clamp(0.0, 1.0);
        variance / (variance + family) * (prior.mean - known * shared)
    }
}
