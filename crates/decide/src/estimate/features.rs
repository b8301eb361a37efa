//! The features of a text that the coefficients of measured models go by.

use stint_types::catalog::{Feature, Features};
use stint_types::chat::Request;

use super::cue::Cue;
use super::scale::{flag, log};
use super::text::{QuestionText, TextAnalysis};

/// The features of a question that stands alone, as the fit takes them.
pub fn features(question: &str) -> Features {
    of(&TextAnalysis::of(&QuestionText::question(question)))
}

/// The features of what a request asks, to show what was counted in it.
pub fn request_features(request: &Request) -> Features {
    of(&TextAnalysis::of(&QuestionText::of(request)))
}

/// The features of a text.
pub(super) fn of(text: &TextAnalysis<'_>) -> Features {
    let (counts, calculation) = (&text.tally.counts, &text.tally.calculation);
    let code = counts.cue(Cue::Code) + counts.cue(Cue::SharedCode) + counts.signs(b"{};`");
    let operators = calculation.operators + calculation.products;
    let mut features = Features::default();
    features[Feature::Bias] = 1.0;
    features[Feature::Length] = log(text.bytes);
    features[Feature::Context] = log(text.context);
    features[Feature::Words] = log(counts.words());
    features[Feature::Numbers] = log(counts.numbers);
    features[Feature::Digits] = log(counts.digits);
    features[Feature::Operators] = log(calculation.operators);
    features[Feature::Products] = log(calculation.products);
    features[Feature::Steps] = log(calculation.steps);
    features[Feature::Rates] = log(counts.cue(Cue::Rate));
    features[Feature::Brackets] = log(counts.signs(b"("));
    features[Feature::Code] = flag(code >= 2);
    features[Feature::Options] = flag(counts.cue(Cue::Compare) > 0);
    features[Feature::Story] = flag(counts.numbers >= 2 && operators == 0);
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, feature: Feature, count: f64) {
        let value = features(question)[feature];
        assert!((value - count.ln_1p()).abs() < 1e-12, "{feature:?} of {question:?} is {value}");
    }

    #[test]
    fn the_steps_of_a_product_grow_with_the_digits_on_both_sides() {
        check("What is 3+4?", Feature::Steps, 1.0);
        check("34*27", Feature::Steps, 4.0);
        check("204 * 7", Feature::Steps, 2.0);
        check("(30+14)*27 - 5", Feature::Steps, 6.0);
    }

    #[test]
    fn a_sign_is_an_operator_only_after_a_number() {
        check("a *bold* word", Feature::Products, 0.0);
        check("state-of-the-art", Feature::Operators, 0.0);
        check("7 - 5", Feature::Operators, 1.0);
    }

    #[test]
    fn an_empty_text_has_only_its_bias() {
        let expected: f64 = features("").0.iter().sum();
        assert!((expected - 1.0).abs() < 1e-12);
    }
}
