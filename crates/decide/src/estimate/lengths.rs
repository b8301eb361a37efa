//! How long a text makes models think and answer, by what is counted in it and by its words.
//!
//! `decide` fits the weights (`make prior`), and writes how beside them in `lengths.md`. A usual thought is also the summary of
//! how hard a text is: of all that is known of a text without asking a model, it goes best with how hard people and models
//! find it.

use stint_types::catalog::{
    LENGTH_FEATURES, LengthGram, LengthPrior, LengthWeights, SURFACE_FEATURES, TaskClass,
};
use stint_types::units::Difficulty;

use super::classify;
use super::grams::{self, RARITY_UNIT};
use super::length_features;
use super::prior::deviation;
use super::scripts::chinese_share;
use super::surface;
use super::text::{QuestionText, TextAnalysis};

/// What a fit sees of a text: exactly what is seen at run time.
#[derive(Debug, Clone, PartialEq)]
pub struct LengthInput {
    /// What is counted in it.
    pub features: [f64; LENGTH_FEATURES],
    /// Which of the kinds of text with weights of their own it is.
    pub kind: usize,
    /// The hashes of its lexemes, repetitions too.
    pub lexemes: Vec<u64>,
}

/// The usual lengths of a text, as logarithms of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextLengths {
    /// Of the thought of a usual model that thinks.
    pub thought: f64,
    /// Of the answer.
    pub answer: f64,
}

/// A thought of so many tokens and fewer is of a greeting, one of so many and more of the hardest problems there are.
const EASIEST: f64 = 32.0;
const HARDEST: f64 = 16_384.0;

/// By how much the logarithm of a thought about a Chinese text is longer than its weights tell: the mean over 46 pairs of sentences in
/// English and Chinese, of eleven kinds. A judgement of what the same in another language takes.
const CHINESE_LONGER: f64 = 0.66;
/// A text with so large a share of Han letters is Chinese.
const CHINESE_WHOLE: f64 = 0.5;
/// The thought of a greeting, and one that is beyond talk, as logarithms of tokens.
const TALK: f64 = 3.9;
const BEYOND_TALK: f64 = 5.2;

impl TextLengths {
    /// The same, where the length of the answer is plain from what is asked.
    pub(super) fn with_answer(self, answer: Option<f64>) -> TextLengths {
        TextLengths { answer: answer.unwrap_or(self.answer), ..self }
    }

    /// The same with a thought of at least so much, where that is plain from what is asked.
    pub(super) fn with_thought_from(self, least: Option<f64>) -> TextLengths {
        TextLengths { thought: least.map_or(self.thought, |least| self.thought.max(least)), ..self }
    }

    /// The same of a text in Chinese. Nearly all Chinese texts that the weights were fitted on are everyday ones, so that a letter of Han
    /// itself makes a text look easy. What is shorter than a thought about talk stays as it is.
    pub(super) fn in_script_of(self, reading: &TextAnalysis<'_>) -> TextLengths {
        if reading.tally.counts.unspaced == 0 {
            return self;
        }
        let chinese = (chinese_share(reading.text) / CHINESE_WHOLE).min(1.0);
        let beyond_talk = ((self.thought - TALK) / (BEYOND_TALK - TALK)).clamp(0.0, 1.0);
        TextLengths { thought: self.thought + CHINESE_LONGER * chinese * beyond_talk, ..self }
    }

    /// The same with an answer of at least so much, where that is plain from what is asked.
    pub(super) fn with_answer_from(self, least: Option<f64>) -> TextLengths {
        TextLengths { answer: least.map_or(self.answer, |least| self.answer.max(least)), ..self }
    }

    /// How hard the text is: its usual thought, on a scale of doublings.
    pub fn difficulty(&self) -> Difficulty {
        Difficulty::new((self.thought - EASIEST.ln()) / (HARDEST.ln() - EASIEST.ln()))
    }
}

impl LengthInput {
    /// Of a question that stands alone.
    pub fn of(question: &str) -> LengthInput {
        let text = QuestionText::question(question);
        let mut lexemes = Vec::new();
        let reading = TextAnalysis::with(&text, |lexeme| lexemes.push(lexeme));
        LengthInput::of_reading(&reading, lexemes)
    }

    fn of_reading(reading: &TextAnalysis<'_>, lexemes: Vec<u64>) -> LengthInput {
        let features = length_features::of(reading, &surface::of(reading));
        let kind = length_features::kind(classify::class_of(reading));
        LengthInput { features, kind, lexemes }
    }

    /// The hashes of its lexemes and of pairs of neighbours, repetitions too.
    pub fn grams(&self) -> impl Iterator<Item = u64> {
        grams::grams(&self.lexemes)
    }

    /// What a prior says of it; nothing where there is none.
    pub fn lengths(&self, prior: &LengthPrior) -> Option<TextLengths> {
        predict(prior, &self.features, self.kind, words(prior, &self.lexemes))
    }
}

/// What a prior says of a text of this class, whose words add so much.
pub(super) fn of(
    prior: &LengthPrior,
    reading: &TextAnalysis<'_>,
    class: TaskClass,
    surface: &[f64; SURFACE_FEATURES],
    words: [f64; 2],
) -> Option<TextLengths> {
    predict(prior, &length_features::of(reading, surface), length_features::kind(class), words)
}

fn predict(
    prior: &LengthPrior,
    features: &[f64; LENGTH_FEATURES],
    kind: usize,
    [longer_thought, longer_answer]: [f64; 2],
) -> Option<TextLengths> {
    let (thought, answer) = (prior.thought.get(kind)?, prior.answer.as_ref()?);
    let deviations = deviations(features, &prior.usual);
    let dense = |(level, weights): &(f64, LengthWeights)| level + dot(weights, &deviations);
    Some(TextLengths { thought: dense(thought) + longer_thought, answer: dense(answer) + longer_answer })
}

/// The features' deviations from what is usual, then their squares.
pub fn deviations(features: &[f64; LENGTH_FEATURES], usual: &[(f64, f64)]) -> LengthWeights {
    let mut all = [0.0; 2 * LENGTH_FEATURES];
    let (plain, squares) = all.split_at_mut(LENGTH_FEATURES);
    for (((plain, square), &feature), &usual) in plain.iter_mut().zip(squares).zip(features).zip(usual) {
        *plain = deviation(feature, usual);
        *square = *plain * *plain;
    }
    all
}

fn dot(left: &LengthWeights, right: &LengthWeights) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// What the known words add, each counted once, of a text of length 1.
pub(super) fn words(prior: &LengthPrior, lexemes: &[u64]) -> [f64; 2] {
    let places = prior.grams.len();
    if !places.is_power_of_two() {
        return [0.0; 2];
    }
    let mut seen = vec![0_u64; places.div_ceil(64)];
    let (mut sums, mut square) = ([0_i32; 2], 0_u32);
    for gram in grams::grams(lexemes) {
        let (place, mark) = grams::place(gram, places);
        let LengthGram { fingerprint, rarity, weights } = prior.grams[place];
        let (bit, word) = (1 << (place % 64), &mut seen[place / 64]);
        if rarity == 0 || fingerprint != mark || *word & bit != 0 {
            continue;
        }
        *word |= bit;
        square += u32::from(rarity) * u32::from(rarity);
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(weight));
    }
    let length = f64::from(square).sqrt().max(1.0) / RARITY_UNIT;
    std::array::from_fn(|i| f64::from(sums[i]) * prior.scales[i] / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::shipped;

    fn lengths(text: &str) -> TextLengths {
        LengthInput::of(text).lengths(shipped().unwrap().priors.lengths()).unwrap()
    }

    #[test]
    fn what_is_trivial_is_thought_about_less_than_what_is_hard_in_any_language() {
        let trivial = ["hi", "thanks", "你好", "What is 2+3?", "What is the capital of France?", "Danke!"];
        let hard = [
            "Prove that the equation x^n + y^n = z^n has no solution in positive integers for n > 2.",
            "Find all functions $f:\\mathbb{R}\\to\\mathbb{R}$ with $f(x+f(y))=f(x)+y$ for all $x,y$.",
            "Given n up to 200000 intervals, count the pairs that overlap in O(n log n). Prove your algorithm.",
            "设 $a,b,c$ 为正实数，证明 $\\frac{a}{b+c}+\\frac{b}{c+a}+\\frac{c}{a+b}\\ge\\frac{3}{2}$。",
        ];
        for easy in trivial {
            for hard in hard {
                assert!(lengths(easy).thought + 1.0 < lengths(hard).thought, "{easy} against {hard}");
            }
        }
    }

    #[test]
    fn an_answer_is_as_long_as_what_is_asked_for() {
        let (word, essay) = (
            lengths("What is the capital of France?").answer,
            lengths("Write a detailed essay about the causes of the First World War.").answer,
        );
        assert!(word + 1.2 < essay, "{word} against {essay}");
    }

    #[test]
    fn without_a_prior_nothing_is_said() {
        assert_eq!(LengthInput::of("hi").lengths(&LengthPrior::default()), None);
    }
}
