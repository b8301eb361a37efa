//! What is believed about one model's success: a Bayesian logistic regression on top of the prior's prediction.
//!
//! The logit of success is what the prior predicts, and w·x besides. A model's weights are those that all models share, plus
//! its own, which are expected to be small ([`super::variances`]). This is a model's part: what its own outcomes say of w. With
//! what all outcomes say of the shared weights ([`super::shared_belief`]) follows the rest. Evidence fades (Russac, Vernade and
//! Cappé, *Weighted linear bandits for non-stationary environments*, 2019).

use super::evidence;
use super::features::{FEATURE_COUNT, FeatureRow, LEVEL};
use super::level_pool::LevelEvidence;
use super::matrix::{self, SquareMatrix};
use super::shared_belief::SharedBelief;
use super::variances::{self, OUTCOME_VARIANCE};
use super::word_sums::{WordSum, WordSums};

/// What one model's outcomes say of its weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Belief {
    /// How many outcomes it stands on, the prior's among them.
    pub outcomes: f64,
    /// How precisely its own weights are expected to be zero.
    precisions: FeatureRow,
    /// Σ ω·x·t.
    products: FeatureRow,
    /// Of its own weights, if the shared ones were known.
    covariance: SquareMatrix<FEATURE_COUNT>,
    /// By place; nothing where no word was met.
    words: Vec<WordBelief>,
}

/// What one model's outcomes say of a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WordBelief {
    /// Of its weight, if the shared one were known.
    pub variance: f32,
    /// What its weight is if the shared one is zero.
    pub mean: f32,
}

/// What is believed of the logit's distance from the prior's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogitBelief {
    /// By its features and by its words.
    pub mean: [f64; 2],
    /// The same.
    pub variance: [f64; 2],
}

impl LogitBelief {
    /// The distance.
    pub(super) fn shift(&self) -> f64 {
        self.mean.iter().sum()
    }
}

impl Belief {
    /// What follows from a prior with these variances and the sums; `word` is the variance of a word's own weight.
    pub(super) fn of(variances: &FeatureRow, word: f64, sums: &[f64], words: &WordSums) -> Belief {
        let precisions = variances::inverse(variances);
        let (triangle, products) = evidence::parts(sums);
        let mut precision = [[0.0; FEATURE_COUNT]; FEATURE_COUNT];
        for (&sum, (i, j)) in triangle.iter().zip(evidence::pairs()) {
            (precision[i][j], precision[j][i]) = (sum, sum);
        }
        (0..FEATURE_COUNT).for_each(|i| precision[i][i] += precisions[i]);
        Belief {
            outcomes: precision[LEVEL][LEVEL] / OUTCOME_VARIANCE,
            covariance: matrix::inverse(&precision).unwrap_or_else(|| matrix::diagonal(variances)),
            precisions,
            products: std::array::from_fn(|i| products.get(i).copied().unwrap_or(0.0)),
            words: words.each().iter().map(|sum| WordBelief::of(word, sum)).collect(),
        }
    }

    /// Of a model of which nothing is known but the prior.
    pub(super) fn unknown(variances: &FeatureRow) -> Belief {
        let precisions = variances::inverse(variances);
        Belief {
            outcomes: precisions[LEVEL] / OUTCOME_VARIANCE,
            covariance: matrix::diagonal(variances),
            precisions,
            products: [0.0; FEATURE_COUNT],
            words: Vec::new(),
        }
    }

    /// What is believed of a row, with what is shared.
    pub(super) fn logit(&self, row: &FeatureRow, shared: &SharedBelief) -> (f64, f64) {
        let along = matrix::product(&self.covariance, row);
        let (mut mean, mut variance) = (matrix::dot(&along, &self.products), matrix::dot(row, &along));
        let own = along.iter().zip(&self.precisions);
        for ((along, precision), (usual, unsure)) in own.zip(shared.mean.iter().zip(&shared.variance)) {
            let pull = along * precision;
            mean += pull * usual;
            variance += pull * pull * unsure;
        }
        (mean, variance.max(0.0))
    }

    /// The weight of one feature, with what is shared.
    pub(super) fn weight(&self, feature: usize, shared: &SharedBelief) -> f64 {
        let row = &self.covariance[feature];
        (0..FEATURE_COUNT).map(|i| row[i] * (self.products[i] + self.precisions[i] * shared.mean[i])).sum()
    }

    /// What its outcomes alone say of its level.
    pub(super) fn level_evidence(&self) -> LevelEvidence {
        let (known, expected) = (self.covariance[LEVEL][LEVEL].recip(), self.precisions[LEVEL]);
        let precision = known - expected;
        if precision <= 1e-9 {
            return LevelEvidence::NONE;
        }
        let level = matrix::dot(&self.covariance[LEVEL], &self.products) * known / precision;
        LevelEvidence { precision, level }
    }

    /// How far its level is expected from the prediction.
    pub(super) fn level_variance(&self) -> f64 {
        self.precisions[LEVEL].recip()
    }

    /// How much of what its level was expected to be is left in its logit of a row.
    pub(super) fn level_pull(&self, row: &FeatureRow) -> f64 {
        matrix::dot(&self.covariance[LEVEL], row) * self.precisions[LEVEL]
    }

    /// By place, where any word was met.
    pub(super) fn words(&self) -> &[WordBelief] {
        &self.words
    }

    /// What its outcomes say of the shared weights: a precision and a product.
    pub(super) fn of_shared(&self) -> (SquareMatrix<FEATURE_COUNT>, FeatureRow) {
        let scaled = |i: usize, j: usize| self.precisions[i] * self.covariance[i][j] * self.precisions[j];
        let own = |i: usize, j: usize| if i == j { self.precisions[i] } else { 0.0 };
        let precision = std::array::from_fn(|i| std::array::from_fn(|j| own(i, j) - scaled(i, j)));
        let along = matrix::product(&self.covariance, &self.products);
        (precision, std::array::from_fn(|i| self.precisions[i] * along[i]))
    }
}

impl WordBelief {
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are more than is known")]
    fn of(own: f64, sum: &WordSum) -> WordBelief {
        let variance = own / (1.0 + own * sum.precision);
        WordBelief { variance: variance as f32, mean: (variance * sum.product) as f32 }
    }

    /// What it says of the shared weight, where a model's own is expected within `own` of it: a precision and a product.
    pub(super) fn of_shared(self, own: f64) -> WordSum {
        let precision = (1.0 - f64::from(self.variance) / own) / own;
        WordSum { precision: precision.max(0.0), product: f64::from(self.mean) / own }
    }
}
