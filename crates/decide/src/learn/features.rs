//! What a belief about one model's success depends on: the request, the same whichever models could serve it, and what the
//! prior predicts of the model.

use stint_types::catalog::{ModelDemand, RequestTraits, TRAIT_COUNTS, TRAIT_WORD_PLACES, TRAITS, TaskClass};
use stint_types::units::Chance;

use super::thought_words::RequestWords;

/// How many features a belief about success has, beside words.
pub(super) const FEATURE_COUNT: usize = COUNTS + TRAIT_COUNTS;
/// How many places there are for words. Words that share one are one to a belief.
pub(super) const WORD_PLACES: usize = TRAIT_WORD_PLACES as usize;
/// How many kinds of work there are.
pub(super) const CLASSES: usize = 6;

/// How good the model is altogether.
pub(super) const LEVEL: usize = 0;
/// How much of a thought there was.
pub(super) const SHARE: usize = 1;
/// The prior's own prediction.
pub(super) const OWN: usize = 2;
/// How long the prompt is.
pub(super) const PROMPT: usize = 3;
/// The first of the kinds of work.
pub(super) const CLASS: usize = 4;
/// The first of the traits.
pub(super) const TRAIT: usize = CLASS + CLASSES;
/// The first of the counts.
pub(super) const COUNTS: usize = TRAIT + TRAITS;

/// How far each trait usually is from zero, over MMLU-Pro's questions.
const TRAITS_USUAL: [f64; TRAITS] = [0.65, 0.105, 0.105, 0.052, 0.041, 0.046, 0.02, 0.275];
/// No chance is taken for surer than this.
const CHANCE_MIN: f64 = 1e-3;

/// A belief's features beside words: scaled so that a usual request has values about as far from zero as one.
pub(super) type FeatureRow = [f64; FEATURE_COUNT];

/// A request as beliefs see it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestFeatures<'a> {
    /// What is the same for all models.
    row: FeatureRow,
    words: &'a [u16],
    /// What each word counts: their squares add up to 1.
    pub word: f64,
}

impl<'a> RequestFeatures<'a> {
    /// Of a request of that kind.
    pub(super) fn of(class: TaskClass, request: &'a RequestTraits) -> RequestFeatures<'a> {
        let mut row = [0.0; FEATURE_COUNT];
        row[LEVEL] = 1.0;
        row[CLASS + class_index(class)] = 1.0;
        for ((place, value), usual) in row[TRAIT..COUNTS].iter_mut().zip(&request.traits).zip(&TRAITS_USUAL) {
            *place = bounded(f64::from(*value) / usual);
        }
        for (place, value) in row[COUNTS..].iter_mut().zip(&request.counts) {
            *place = bounded(f64::from(*value));
        }
        let count = u32::try_from(request.words.len().max(1)).unwrap_or(u32::MAX);
        RequestFeatures { row, words: &request.words, word: f64::from(count).sqrt().recip() }
    }

    /// Its words as they stand.
    pub(super) fn words(&self) -> RequestWords<'a> {
        RequestWords { places: self.words, value: self.word }
    }

    /// Where its words stand.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.words.iter().map(|&word| usize::from(word) % WORD_PLACES)
    }

    /// The features of a model's success when `share` of its thought was there: 1 for a finished one, 0 for none.
    pub(super) fn row(&self, predicted: &ModelDemand, share: f64) -> FeatureRow {
        let mut row = self.row;
        row[SHARE] = 2.0 * share - 1.0;
        row[OWN] = own_feature(offset(predicted, share));
        row[PROMPT] = bounded(((1.0 + predicted.prompt.as_f64()).ln() - 5.0) / 1.5);
        row
    }
}

/// The logit of success that the prior predicts when `share` of the thought was there.
pub(super) fn offset(predicted: &ModelDemand, share: f64) -> f64 {
    let (blind, done) = (predicted.blind.get(), predicted.done.get());
    logit(Chance::new(blind + (done - blind) * share))
}

/// The feature that a predicted logit is.
pub(super) fn own_feature(logit: f64) -> f64 {
    bounded(logit / 2.0)
}

/// The logit of a chance.
pub(super) fn logit(chance: Chance) -> f64 {
    let chance = chance.get().clamp(CHANCE_MIN, 1.0 - CHANCE_MIN);
    (chance / (1.0 - chance)).ln()
}

/// The chance that a logit stands for.
pub(super) fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Where a class stands in tables by class.
pub(super) fn class_index(class: TaskClass) -> usize {
    match class {
        TaskClass::Math => 0,
        TaskClass::Code => 1,
        TaskClass::Extraction => 2,
        TaskClass::MultipleChoice => 3,
        TaskClass::Agentic => 4,
        TaskClass::Chat => 5,
    }
}

fn bounded(value: f64) -> f64 {
    value.clamp(-3.0, 3.0)
}
