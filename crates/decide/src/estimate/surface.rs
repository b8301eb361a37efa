//! What the shipped prior counts in a question, whatever it is about: lengths, signs, cue words, and the shape of
//! its options. These carry it where words are strange.

use stint_types::catalog::SURFACE_FEATURES;

use super::cue::QuestionStyle;
use super::lexeme_counts::LexemeCounts;
use super::option_shape::OptionShape;
use super::scale::{flag, log, share};
use super::sign_kind::SignKind;
use super::text::TextAnalysis;

/// How a feature is made of a text.
type SurfaceFeature = fn(&Surface<'_>) -> f64;

/// What the surface features of a text are.
pub(super) type SurfaceValues = [f64; SURFACE_FEATURES];

/// The surface features by name. The shipped prior has their weights in this order, so it changes only with the prior.
const FEATURES: [(&str, SurfaceFeature); SURFACE_FEATURES] = [
    ("bias", |_| 1.0),
    ("question length", |s| log(s.reading.question.len())),
    ("numbers and numeric options", |s| flag(s.counts.numbers > 0 && s.options.numeric > 0.5)),
    ("words", |s| s.words),
    ("letters per word", |s| share(s.counts.letters, s.counts.words())),
    ("numbers", |s| s.numbers),
    ("digits", |s| log(s.counts.digits)),
    ("capitals per letter", |s| share(s.counts.capitals, s.counts.letters)),
    ("question marks", |s| s.signs(SignKind::Question)),
    ("commas", |s| s.signs(SignKind::Comma)),
    ("stops", |s| s.signs(SignKind::Stop)),
    ("formula signs", |s| s.signs(SignKind::Formula)),
    ("operators", |s| s.signs(SignKind::Operator)),
    ("brackets", |s| s.signs(SignKind::Bracket)),
    ("quotes", |s| s.signs(SignKind::Quote)),
    ("colons", |s| s.signs(SignKind::Colon)),
    ("percents", |s| s.signs(SignKind::Percent)),
    ("foreign signs", |s| s.signs(SignKind::Foreign)),
    ("has a formula", |s| flag(SignKind::Formula.count(s.counts) > 0)),
    ("has a gap", |s| flag(s.reading.question.contains("__"))),
    ("lines", |s| log(s.reading.lines)),
    ("has a negation", |s| flag(s.counts.style(QuestionStyle::Negation) > 0)),
    ("calculation words", |s| s.style(QuestionStyle::Calculation)),
    ("question words", |s| s.style(QuestionStyle::Question)),
    ("judgement words", |s| s.style(QuestionStyle::Judgement)),
    ("condition words", |s| s.style(QuestionStyle::Condition)),
    ("rate words", |s| s.style(QuestionStyle::Rate)),
    ("reference words", |s| s.style(QuestionStyle::Reference)),
    ("has a statement", |s| flag(s.counts.style(QuestionStyle::Statement) > 0)),
    ("asks with a question mark", |s| s.asks_with('?')),
    ("asks with a stop", |s| s.asks_with('.')),
    ("asks with a colon", |s| s.asks_with(':')),
    ("last line ends with a stop", |s| s.ends_with('.')),
    ("options", |s| s.options.count),
    ("ten options or more", |s| flag(s.options.count >= 10.0)),
    ("one to four options", |s| flag(s.options.count > 0.0 && s.options.count <= 4.0)),
    ("mean option length", |s| s.options.mean),
    ("words by numeric options", |s| s.words * s.options.numeric),
    ("longest option", |s| s.options.longest),
    ("spread of option lengths", |s| s.options.spread),
    ("options with digits", |s| s.options.digits),
    ("numeric options", |s| s.options.numeric),
    ("numbers by numeric options", |s| s.options.numeric * s.numbers),
    ("options with formulas", |s| s.options.formulas),
    ("options with commas", |s| s.options.commas),
    ("options with a capital", |s| s.options.capitals),
    ("options that are sentences", |s| s.options.sentences),
    ("a collective option", |s| s.options.collective),
];

/// The surface features of a text, in the order of the prior's weights; the first is always 1.
pub(super) fn of(reading: &TextAnalysis<'_>) -> SurfaceValues {
    let counts = &reading.tally.counts;
    let surface = Surface {
        reading,
        counts,
        options: OptionShape::of(&reading.options),
        words: log(counts.words()),
        numbers: log(counts.numbers),
    };
    FEATURES.map(|(_, feature)| feature(&surface))
}

/// What the features are made of.
struct Surface<'a> {
    reading: &'a TextAnalysis<'a>,
    counts: &'a LexemeCounts,
    options: OptionShape,
    words: f64,
    numbers: f64,
}

impl Surface<'_> {
    fn signs(&self, kind: SignKind) -> f64 {
        log(kind.count(self.counts))
    }

    fn style(&self, style: QuestionStyle) -> f64 {
        log(self.counts.style(style))
    }

    fn asks_with(&self, sign: char) -> f64 {
        flag(self.reading.question.trim_end().ends_with(sign))
    }

    fn ends_with(&self, sign: char) -> f64 {
        let last = self.reading.text.trim_end().lines().next_back();
        flag(last.is_some_and(|line| line.ends_with(sign)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::QuestionText;

    fn check(text: &str, feature: &str, expected: f64) {
        let place = FEATURES.iter().position(|(name, _)| *name == feature).unwrap();
        let found = of(&TextAnalysis::of(&QuestionText::question(text)))[place];
        assert!((found - expected).abs() < 1e-12, "{feature} of {text:?} is {found}");
    }

    #[test]
    fn the_order_is_that_of_the_shipped_weights() {
        let places = [
            (21, "has a negation"),
            (29, "asks with a question mark"),
            (33, "options"),
            (41, "numeric options"),
        ];
        places.iter().for_each(|(place, name)| assert_eq!(FEATURES[*place].0, *name));
    }

    #[test]
    fn options_are_told_from_the_question() {
        let question = "Which is not even?\nA) 2\nB) 4\nC) 7, or none";
        check(question, "options", 3.0);
        check(question, "has a negation", 1.0);
        check(question, "asks with a question mark", 1.0);
        check(question, "numeric options", 2.0 / 3.0);
        check("Which is even?", "options", 0.0);
    }

    #[test]
    fn an_empty_text_has_only_its_bias() {
        let features = of(&TextAnalysis::of(&QuestionText::question("")));
        assert!((features.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
