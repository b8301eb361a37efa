//! What is believed about one model's success: a Bayesian linear correction of the prior's prediction.
//!
//! An outcome y is taken as `p + w·x + noise`, with p the prior's prediction, x the features and w the correction,
//! which is expected to be zero. How much of a thought there was is one of the features: a finished thought, a cut one
//! and none share all else, and differ by what the data say they do. Evidence fades (Russac, Vernade and Cappé,
//! *Weighted linear bandits for non-stationary environments*, 2019), and the prior with it, down to a remainder that
//! keeps the solution unique.

use super::demand_summary::{FEATURE_COUNT, FeatureRow};
use super::matrix::{self, SquareMatrix};

/// Sums that a belief is made of: the lower triangle of Σ x·xᵀ/v, then Σ x·(y − p)/v, with v the variance of y.
pub(super) const SUMS: usize = FEATURE_COUNT * (FEATURE_COUNT + 1) / 2 + FEATURE_COUNT;
/// What the prior counts at least, in outcomes.
const PRIOR_MIN: f64 = 10.0;
/// The variance of an outcome that is as likely right as wrong.
const VARIANCE_MAX: f64 = 0.25;

/// The correction's posterior mean and covariance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Belief {
    /// How many outcomes it stands on, the prior's among them.
    pub outcomes: f64,
    mean: FeatureRow,
    covariance: SquareMatrix<FEATURE_COUNT>,
}

/// How far an outcome with this chance is spread.
pub(super) fn variance(chance: f64) -> f64 {
    const VARIANCE_MIN: f64 = 0.09;
    (chance * (1.0 - chance)).clamp(VARIANCE_MIN, VARIANCE_MAX)
}

/// Adds an outcome to the sums: `surprise` is what it was beyond the prior's prediction.
pub(super) fn add(sums: &mut [f64], row: &FeatureRow, surprise: f64, precision: f64) {
    let (triangle, vector) = sums.split_at_mut(FEATURE_COUNT * (FEATURE_COUNT + 1) / 2);
    let pairs = (0..FEATURE_COUNT).flat_map(|i| (0..=i).map(move |j| (i, j)));
    for (sum, (i, j)) in triangle.iter_mut().zip(pairs) {
        *sum += precision * row[i] * row[j];
    }
    for (sum, x) in vector.iter_mut().zip(row) {
        *sum += precision * x * surprise;
    }
}

/// Changes an outcome that is in the sums by so much; `precision` is what is left of the one that it was added with.
pub(super) fn amend(sums: &mut [f64], row: &FeatureRow, change: f64, precision: f64) {
    let (_, vector) = sums.split_at_mut(FEATURE_COUNT * (FEATURE_COUNT + 1) / 2);
    for (sum, x) in vector.iter_mut().zip(row) {
        *sum += precision * x * change;
    }
}

/// Forgets how far outcomes were beyond the prior altogether, and keeps how they differed between requests: what is left of
/// the sums where every outcome before had an unknown shift in common (its variance without bounds, integrated out). A
/// model that has changed is mostly better or worse everywhere.
pub(super) fn forget_level(sums: &mut [f64]) {
    let (triangle, vector) = sums.split_at_mut(FEATURE_COUNT * (FEATURE_COUNT + 1) / 2);
    // Row i of the triangle begins at i·(i + 1)/2, with the product of x_i and the constant feature.
    let levels: FeatureRow = std::array::from_fn(|i| triangle[i * (i + 1) / 2]);
    let (count, surprise) = (levels[0], vector[0]);
    if count <= 0.0 {
        return;
    }
    let pairs = (0..FEATURE_COUNT).flat_map(|i| (0..=i).map(move |j| (i, j)));
    for (sum, (i, j)) in triangle.iter_mut().zip(pairs) {
        *sum -= levels[i] * levels[j] / count;
    }
    for (sum, level) in vector.iter_mut().zip(&levels) {
        *sum -= level * surprise / count;
    }
}

impl Belief {
    /// What follows from a prior worth so many outcomes, of which `kept` is left, and the sums.
    pub(super) fn of(prior_weight: f64, kept: f64, sums: &[f64]) -> Belief {
        let prior = (prior_weight * kept).max(PRIOR_MIN.min(prior_weight)) / VARIANCE_MAX;
        let (triangle, vector) = sums.split_at(FEATURE_COUNT * (FEATURE_COUNT + 1) / 2);
        let mut precision = [[0.0; FEATURE_COUNT]; FEATURE_COUNT];
        let pairs = (0..FEATURE_COUNT).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for (&sum, (i, j)) in triangle.iter().zip(pairs) {
            (precision[i][j], precision[j][i]) = (sum, sum);
        }
        (0..FEATURE_COUNT).for_each(|i| precision[i][i] += prior);
        let outcomes = precision[0][0] * VARIANCE_MAX;
        let covariance = matrix::inverse(&precision).unwrap_or_else(|| diagonal(1.0 / prior));
        let vector = std::array::from_fn(|i| vector.get(i).copied().unwrap_or(0.0));
        Belief { outcomes, mean: matrix::product(&covariance, &vector), covariance }
    }

    /// What is to be added to the prior's prediction.
    pub(super) fn correction(&self, row: &FeatureRow) -> f64 {
        matrix::dot(&self.mean, row)
    }

    /// The standard deviation of that.
    pub(super) fn spread(&self, row: &FeatureRow) -> f64 {
        matrix::dot(row, &matrix::product(&self.covariance, row)).max(0.0).sqrt()
    }
}

fn diagonal(value: f64) -> SquareMatrix<FEATURE_COUNT> {
    let mut matrix = [[0.0; FEATURE_COUNT]; FEATURE_COUNT];
    (0..FEATURE_COUNT).for_each(|i| matrix[i][i] = value);
    matrix
}
