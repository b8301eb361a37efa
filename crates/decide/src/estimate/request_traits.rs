//! What is kept of a text for learning.

use stint_types::catalog::{Prior, RequestTraits, TRAIT_COUNTS};

use super::prior;
use super::rarest_words::RarestWords;
use super::surface;

/// Which surface features are kept, by their place. Twelve were as good as all 47: left-out questions of pairs of models that
/// no report quotes were ranked as well.
const KEPT: [usize; TRAIT_COUNTS] = [1, 2, 3, 4, 5, 10, 11, 20, 22, 33, 36, 41];

/// What is kept of a text with such traits, such surface features and such words.
pub(super) fn of(
    prior: &Prior,
    traits: &prior::QuestionTraits,
    surface: &surface::SurfaceValues,
    words: &RarestWords,
) -> RequestTraits {
    RequestTraits {
        traits: traits.values.map(rounded),
        counts: KEPT.map(|place| rounded(prior::deviation(surface[place], prior.usual[place]))),
        words: words.places(),
    }
}

/// To thousandths, so that what is recorded is what was learned from.
#[expect(clippy::cast_possible_truncation, reason = "a few units, of which thousandths are kept")]
fn rounded(value: f64) -> f32 {
    ((value * 1000.0).round() / 1000.0) as f32
}

#[cfg(test)]
mod tests {
    use stint_types::catalog::{Demand, TRAIT_WORDS_MAX};
    use stint_types::chat::{Message, Request, Role};
    use stint_types::units::Tokens;

    use super::*;
    use crate::estimate::{estimate, shipped};

    fn check(text: &str, models: &[&str]) -> Demand {
        let prompts = models.iter().map(|&name| (name.into(), Tokens(50))).collect();
        let request = Request::new("auto", vec![Message::text(Role::User, text)]);
        estimate(&request, &prompts, &shipped().unwrap())
    }

    #[test]
    fn a_request_looks_the_same_whichever_models_could_serve_it() {
        let text = "Which force keeps a planet on its orbit around the sun?";
        let alone = check(text, &["reasoner"]).request;
        assert_eq!(alone, check(text, &["one", "two"]).request);
        assert!(!alone.words.is_empty() && alone.traits.iter().any(|value| *value != 0.0), "{alone:?}");
        assert_ne!(alone, check("Write a poem about the sea.", &["reasoner"]).request);
    }

    #[test]
    fn what_is_recorded_of_a_long_text_stays_small_and_is_read_as_it_was_written() {
        let request = check(include_str!("../../../../README.md"), &["one"]).request;
        assert_eq!(request.words.len(), TRAIT_WORDS_MAX);
        let written = serde_json::to_string(&request).unwrap();
        assert!(written.len() < 700, "{}: {written}", written.len());
        assert_eq!(serde_json::from_str::<RequestTraits>(&written).unwrap(), request);
    }

    #[test]
    fn order_and_repetition_of_words_change_nothing() {
        let words = |text| check(text, &["one"]).request.words;
        assert_eq!(words("planet orbit sun"), words("sun sun orbit planet"));
    }
}
