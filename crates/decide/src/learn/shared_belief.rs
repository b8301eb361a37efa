//! What all models' outcomes together say of the weights that they share.
//!
//! Exact for the normal approximation: a model's own weights are integrated out of what its outcomes say. So nothing is stored
//! for it beside the models' own sums, and what replicas know of a model adds up as before.

use super::belief::{Belief, LogitBelief};
use super::features::{FEATURE_COUNT, FeatureRow, RequestFeatures};
use super::settings::Settings;
use super::variances;
use super::word_sums::WordSum;

/// The shared weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharedBelief {
    /// Their means.
    pub mean: FeatureRow,
    /// Their variances.
    pub variance: FeatureRow,
    /// Of words, by place; nothing where no word was met.
    pulls: Vec<WordPull>,
    own_word: f64,
    prior_word: f64,
}

/// How a shared weight pulls each model's own, per unit of the variance that is left to that.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct WordPull {
    mean: f32,
    variance: f32,
}

impl SharedBelief {
    /// Nothing learned.
    pub(super) fn new(settings: &Settings) -> SharedBelief {
        SharedBelief {
            mean: [0.0; FEATURE_COUNT],
            variance: variances::shared(settings),
            pulls: Vec::new(),
            own_word: variances::own_word(settings),
            prior_word: variances::shared_word(settings),
        }
    }

    /// Takes up what all outcomes say of words, by place.
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are more than is known")]
    pub(super) fn update_words(&mut self, words: &[WordSum]) {
        let own = self.own_word.recip();
        let pull = |sum: &WordSum| {
            let variance = sum.precision.recip();
            WordPull { mean: (sum.product * variance * own) as f32, variance: (variance * own * own) as f32 }
        };
        self.pulls.clear();
        self.pulls.extend(words.iter().map(pull));
    }

    /// What is believed of a model's logit on such a request: `own` is what its outcomes say.
    pub(super) fn logit(
        &self,
        own: &Belief,
        features: &RequestFeatures<'_>,
        row: &FeatureRow,
    ) -> LogitBelief {
        let (mean, variance) = own.logit(row, self);
        let (by_words, unsure) = self.words_logit(own, features);
        LogitBelief { mean: [mean, by_words], variance: [variance, unsure] }
    }

    fn words_logit(&self, own: &Belief, features: &RequestFeatures<'_>) -> (f64, f64) {
        let (mut mean, mut variance) = (0.0, 0.0);
        for place in features.places() {
            let (weight, unsure) = self.word(own, place);
            mean += weight;
            variance += unsure;
        }
        (features.word * mean, features.word * features.word * variance)
    }

    /// The mean and variance of a word's weight in a model.
    #[inline]
    pub(super) fn word(&self, own: &Belief, place: usize) -> (f64, f64) {
        let pull = self
            .pulls
            .get(place)
            .copied()
            .unwrap_or(WordPull { mean: 0.0, variance: unknown_pull(self.prior_word, self.own_word) });
        let (variance, mean) = match own.words().get(place) {
            Some(word) => (f64::from(word.variance), f64::from(word.mean)),
            None => (self.own_word, 0.0),
        };
        let weight = mean + variance * f64::from(pull.mean);
        (weight, variance + variance * variance * f64::from(pull.variance))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are more than is known")]
fn unknown_pull(prior: f64, own: f64) -> f32 {
    (prior / (own * own)) as f32
}
