//! Stint's own estimate, fitted on a fold's train rows alone, through the file that would ship.
//!
//! Where the fitted rows are choices, as those of the shipped prior are, it is the very estimate that `/v1/plan` answers with,
//! of models that do not think. The weights of lengths are the shipped ones: they were fitted on the difficulty of MMLU-Pro's
//! questions, among others, but a question with options is not told by them; of GSM8K's test questions they saw none. Where free
//! questions were fitted on, only the traits that were fitted on them count.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::folds::Fold;
use crate::measure::mean;
use crate::train::{self, Lessons};
use stint_decide::estimate::{ShippedError, decode, encode, estimate, prior, shipped};
use stint_types::catalog::{AbilityLevel, Calibration, Loadings, ModelAbility, Prior, TRAITS};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::Tokens;

use super::MIXTRAL;
use super::pool::{Goal, Kind, Pool};
use super::study::Router;

/// GPT-4's public accuracy on MMLU-Pro (GPT-4 Turbo's, of the benchmark's paper): all that is said of it where it was
/// not fitted on.
const GPT4: f64 = 0.637;

/// The shipped estimate.
#[derive(Debug, Clone)]
pub struct Own {
    shipped: Calibration,
}

impl Own {
    /// With what ships beside the prior.
    ///
    /// # Errors
    /// When that cannot be read, which the gateway's tests rule out.
    pub fn new() -> Result<Own, ShippedError> {
        Ok(Own { shipped: shipped()? })
    }
}

impl Router for Own {
    fn name(&self) -> &'static str {
        "Stint's estimate"
    }

    fn foretell(&self, pool: &Pool, fold: &Fold, goals: &[Goal]) -> Vec<Vec<f64>> {
        let lessons = Lessons { rows: &pool.rows, sights: &pool.sights, bare: &pool.bare };
        let fitted = train::fit(lessons, &fold.train).prior;
        let prior = decode(&encode(&fitted)).unwrap_or(fitted);
        let choices = fold.train.iter().filter(|&&row| pool.rows[row].options.len() >= 3).count();
        let chances: Vec<Chances> = if choices * 2 > fold.train.len() {
            let shipping = Shipping::of(prior, &self.shipped);
            fold.test.iter().map(|&row| shipping.chances(&pool.texts[row])).collect()
        } else {
            fold.test.iter().map(|&row| by_traits(&prior, pool, row)).collect()
        };
        goals
            .iter()
            .map(|goal| chances.iter().map(|chances| foretold(&goal.kind, chances)).collect())
            .collect()
    }
}

/// Each model's chance of success.
type Chances = BTreeMap<Arc<str>, f64>;

/// What would ship if a prior did, and the models that are asked about.
struct Shipping {
    calibration: Calibration,
    prompts: BTreeMap<Arc<str>, Tokens>,
}

impl Shipping {
    fn of(mut prior: Prior, shipped: &Calibration) -> Shipping {
        if let Some(mixtral) = prior.models.get(MIXTRAL).copied() {
            prior.models.entry("mixtral-8x7b".into()).or_insert(mixtral);
        }
        let gpt4 = ModelAbility::same(AbilityLevel::from_share(GPT4, 0.2));
        let prompts = prior.models.keys().cloned().chain([Arc::from("gpt-4")]);
        let prompts = prompts.map(|name| (name, Tokens(100))).collect();
        let calibration = Calibration {
            priors: Arc::new(shipped.priors.with_general(prior)),
            abilities: [("gpt-4".into(), gpt4)].into(),
            ..shipped.clone()
        };
        Shipping { calibration, prompts }
    }

    /// Of models that do not think.
    fn chances(&self, text: &str) -> Chances {
        let request = Request::new("auto", vec![Message::text(Role::User, text)]);
        let demand = estimate(&request, &self.prompts, &self.calibration);
        demand.models.into_iter().map(|(name, model)| (name, model.blind.get())).collect()
    }
}

/// By the traits alone.
fn by_traits(prior: &Prior, pool: &Pool, row: usize) -> Chances {
    let traits = prior::trait_readings(prior, &pool.sights[row]).blend(prior).values;
    prior.models.keys().map(|name| (name.clone(), chance(&loadings(prior, name), &traits))).collect()
}

fn foretold(kind: &Kind, chances: &Chances) -> f64 {
    let chance = |name: &str| chances.get(name).copied().unwrap_or_default();
    match kind {
        Kind::Gain { weak, strong } => chance(strong) - chance(weak),
        Kind::Success(model) => chance(model),
        Kind::Difficulty => 1.0 - mean(&chances.values().copied().collect::<Vec<_>>()),
    }
}

fn loadings(prior: &Prior, name: &str) -> Loadings {
    prior.models.get(name).copied().unwrap_or_default()
}

fn chance(loadings: &Loadings, traits: &[f64; TRAITS]) -> f64 {
    1.0 / (1.0 + (-loadings.logit(traits)).exp())
}
