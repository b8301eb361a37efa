//! Stint's own estimate, fitted on a fold's train rows alone, through the file that would ship.

use crate::folds::Fold;
use crate::measure::mean;
use crate::train::{self, Lessons};
use stint_decide::estimate::{decode, encode, prior};
use stint_types::catalog::{Loadings, Prior, TRAITS};

use super::MIXTRAL;
use super::pool::{Goal, Kind, Pool};
use super::study::Router;

/// GPT-4's public accuracy on MMLU-Pro (GPT-4 Turbo's, of the benchmark's paper): all that is said of it where it was
/// not fitted on.
const GPT4: f64 = 0.637;

/// The shipped estimate.
#[derive(Debug, Clone, Copy)]
pub struct Own;

impl Router for Own {
    fn name(&self) -> &'static str {
        "Stint's estimate"
    }

    fn foretell(&self, pool: &Pool, fold: &Fold, goals: &[Goal]) -> Vec<Vec<f64>> {
        let lessons = Lessons { rows: &pool.rows, sights: &pool.sights, bare: &pool.bare };
        let fitted = train::fit(lessons, &fold.train).prior;
        let prior = decode(&encode(&fitted)).unwrap_or(fitted);
        let choices = fold.train.iter().filter(|&&row| pool.rows[row].options.len() >= 3).count();
        let strange = choices * 2 > fold.train.len();
        let question = |&row: &usize| Question {
            traits: prior::trait_readings(&prior, &pool.sights[row]).blend(&prior).values,
            easier: if strange { prior::free_question_bonus(pool.rows[row].options.len()) } else { 0.0 },
        };
        let questions: Vec<Question> = fold.test.iter().map(question).collect();
        goals
            .iter()
            .map(|goal| questions.iter().map(|question| foretold(&prior, &goal.kind, question)).collect())
            .collect()
    }
}

/// A question as the estimate has read it.
struct Question {
    traits: [f64; TRAITS],
    /// What a free question adds to the logit of success, as in the gateway, where questions with options were
    /// fitted on.
    easier: f64,
}

fn foretold(prior: &Prior, kind: &Kind, question: &Question) -> f64 {
    let chance = |name: &str| chance(&loadings(prior, name), question);
    match kind {
        Kind::Gain { weak, strong } => chance(strong) - chance(weak),
        Kind::Success(model) => chance(model),
        Kind::Difficulty => {
            let chances: Vec<f64> = prior.models.keys().map(|name| chance(name)).collect();
            1.0 - mean(&chances)
        }
    }
}

fn loadings(prior: &Prior, name: &str) -> Loadings {
    let known = || prior.models.get(name).copied();
    match name {
        "gpt-4" => known().unwrap_or_else(|| prior.curve.at((GPT4 / (1.0 - GPT4)).ln())),
        "mixtral-8x7b" => known().or_else(|| prior.models.get(MIXTRAL).copied()).unwrap_or_default(),
        _ => known().unwrap_or_default(),
    }
}

fn chance(loadings: &Loadings, question: &Question) -> f64 {
    1.0 / (1.0 + (-loadings.logit(&question.traits) - question.easier).exp())
}
