//! How hard a request looks: from its text to the lengths and chances that the plan prices.
//!
//! Pure, and microseconds: surface features of the last user message, and a small linear model for each of
//! a model's numbers. What the text cannot tell is not guessed at: it stays in the spread of the length.

mod classify;
mod cue;
mod domain;
mod features;
mod fit;
mod signal;
mod solve;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Calibration, Demand, Features, LogNormal, ModelCalibration, ModelDemand, TaskClass};
use crate::chat::Request;
use crate::units::{Chance, Difficulty, Tokens};

pub use features::features;
pub use fit::{Cut, Trace, fit};
pub use signal::{Signal, with_signal};

use text::Text;

/// A prediction beyond this is a feature out of its range, not a length.
const LENGTH_MAX: f64 = 1e6;

/// Estimates what a request needs of each model in `prompts`, which gives the upper bound of its prompt's
/// tokens.
pub fn estimate(
    request: &Request,
    prompts: &BTreeMap<Arc<str>, Tokens>,
    calibration: &Calibration,
) -> Demand {
    let text = Text::of(request);
    let features = features::of(&text);
    let class = classify::class_of(!request.tools.is_empty(), &text);
    let view = View { text: &text, features: &features, class };
    let models: BTreeMap<_, _> = prompts
        .iter()
        .map(|(name, &prompt)| (name.clone(), view.model(calibration.model(name), prompt)))
        .collect();
    let confidence = mean(prompts.keys().map(|name| view.confidence(calibration.model(name))));
    Demand { class, difficulty: difficulty(&models), confidence: Chance::new(confidence), models }
}

/// The coefficients that ship with the binary.
///
/// # Errors
/// When the data file is damaged, which the tests rule out.
pub fn shipped() -> Result<Calibration, toml::de::Error> {
    toml::from_str(include_str!("calibration.toml"))
}

/// What a model's coefficients say of a request with these features, if it is of the kind that they were
/// fitted on. The prompt is not counted.
pub fn demand(calibration: &ModelCalibration, features: &Features) -> ModelDemand {
    let chance = |weights| Chance::new(logistic(features.dot(weights)));
    ModelDemand {
        thinking: LogNormal {
            mu: features.dot(&calibration.thinking).clamp(0.0, LENGTH_MAX.ln()),
            sigma: calibration.sigma,
        },
        solution: Tokens::round(calibration.solution.max(1.0)),
        prompt: Tokens::ZERO,
        done: chance(&calibration.done),
        blind: chance(&calibration.blind),
        bend: calibration.bend,
        spread: 0.0,
    }
}

/// A request as the linear models see it.
struct View<'a> {
    text: &'a Text,
    features: &'a Features,
    class: TaskClass,
}

impl View<'_> {
    fn model(&self, calibration: &ModelCalibration, prompt: Tokens) -> ModelDemand {
        let plain = demand(calibration, self.features);
        let familiar = domain::familiarity(&calibration.domain, self.class, self.text);
        let shrunk = |chance: Chance| Chance::new(chance.get() * familiar);
        ModelDemand { prompt, done: shrunk(plain.done), blind: shrunk(plain.blind), ..plain }
    }

    fn confidence(&self, calibration: &ModelCalibration) -> f64 {
        calibration.confidence * domain::familiarity(&calibration.domain, self.class, self.text)
    }
}

/// A thinking model's own thinking length is a free, honest label of difficulty: the usual thought, averaged
/// over the models, on a scale of doublings on which a token is 0 and 2¹⁵ tokens are 1.
fn difficulty(models: &BTreeMap<Arc<str>, ModelDemand>) -> Difficulty {
    const DOUBLINGS: f64 = 15.0;
    Difficulty::new(mean(models.values().map(|model| model.thinking.median().log2() / DOUBLINGS)))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = Tokens(values.len() as u64).as_f64().max(1.0);
    values.sum::<f64>() / count
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Message, Role};

    fn request(text: &str) -> Request {
        Request::new("auto", vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, text)])
    }

    fn check(text: &str) -> Demand {
        let prompts = ["reasoner", "stranger"].map(|name| (Arc::from(name), Tokens(50))).into();
        estimate(&request(text), &prompts, &shipped().unwrap())
    }

    #[test]
    fn a_long_calculation_is_expected_to_take_a_longer_thought_than_a_short_one() {
        let (short, long) = (check("What is 3+4?"), check("What is (34+15)*27-18*(9+4)?"));
        assert!(short.models["reasoner"].thinking.mu < long.models["reasoner"].thinking.mu);
        assert!(short.difficulty < long.difficulty);
        assert_eq!(short.class, TaskClass::Math);
    }

    #[test]
    fn a_model_is_trusted_only_with_what_it_was_fitted_on() {
        let (sum, talk) = (check("What is 12+30?"), check("What is the capital of France?"));
        assert!(sum.models["reasoner"].done.get() > 0.8, "{}", sum.models["reasoner"].done);
        assert!(talk.models["reasoner"].done.get() < talk.models["stranger"].done.get() / 2.0);
        assert!(talk.confidence < sum.confidence);
    }

    #[test]
    fn a_model_without_coefficients_gets_the_prior() {
        let demand = check("Hello!");
        let stranger = &demand.models["stranger"];
        assert!((100.0..1000.0).contains(&stranger.thinking.median()), "{}", stranger.thinking.median());
        assert_eq!(stranger.prompt, Tokens(50));
    }

    #[test]
    fn no_text_at_all_has_an_estimate_too() {
        let mut request = request("");
        request.messages.clear();
        let prompts = [(Arc::from("stranger"), Tokens(1))].into();
        assert_eq!(estimate(&request, &prompts, &shipped().unwrap()).class, TaskClass::Chat);
    }
}
