//! How a length goes with its request, around the mean of its class.
//!
//! A ridge of how long it was beside the predicted length on what the prior says of the request, with what is shared by all
//! of a class taken out of both: the mean stays the class's own, the slopes are those within classes, added up over them.

use super::features::CLASSES;
use super::matrix::{self, SquareMatrix};

/// For how many outcomes what was believed beforehand counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlopePriors {
    /// In a slope, which is zero then, with features as far from their mean as one.
    pub slope: f64,
    /// In the mean of a class, which is that of all.
    pub class: f64,
}

/// How many sums slopes of so many features take: Σ z·zᵀ and Σ z·ratio of all classes, then of each how many, Σ ratio and Σ z.
pub(super) const fn sums_of(features: usize) -> usize {
    features * (features + 1) / 2 + features + (2 + features) * CLASSES
}

/// By how much a length is longer than the mean of its class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LengthSlopes<const N: usize> {
    slopes: [f64; N],
    /// The features that the mean length of each class belongs to.
    means: [[f64; N]; CLASSES],
}

/// Adds a length that was `ratio` times as long as predicted.
pub(super) fn add<const N: usize>(sums: &mut [f64], class: usize, features: &[f64; N], ratio: f64) {
    let (triangle, rest) = sums.split_at_mut(N * (N + 1) / 2);
    let (products, classes) = rest.split_at_mut(N);
    for (sum, (i, j)) in triangle.iter_mut().zip(pairs(N)) {
        *sum += features[i] * features[j];
    }
    products.iter_mut().zip(features).for_each(|(sum, z)| *sum += z * ratio);
    if let Some([count, ratios, means @ ..]) = classes.chunks_exact_mut(2 + N).nth(class) {
        *count += 1.0;
        *ratios += ratio;
        means.iter_mut().zip(features).for_each(|(sum, z)| *sum += z);
    }
}

impl<const N: usize> LengthSlopes<N> {
    /// What follows from the sums, given how much the priors count.
    pub(super) fn of(sums: &[f64], priors: SlopePriors) -> LengthSlopes<N> {
        let (triangle, rest) = sums.split_at(N * (N + 1) / 2);
        let (products, classes) = rest.split_at(N);
        let mut scatter: SquareMatrix<N> = [[0.0; N]; N];
        for (&sum, (i, j)) in triangle.iter().zip(pairs(N)) {
            (scatter[i][j], scatter[j][i]) = (sum, sum);
        }
        let mut products: [f64; N] = std::array::from_fn(|i| products[i]);
        let all = mean_of_all(classes);
        let mut means = [all; CLASSES];
        for (mean, class) in means.iter_mut().zip(classes.chunks_exact(2 + N)) {
            let (count, ratios, sums) = (class[0], class[1], &class[2..]);
            for i in 0..N {
                let own = sums[i] / count.max(f64::MIN_POSITIVE);
                products[i] -= own * ratios;
                (0..N).for_each(|j| scatter[i][j] -= own * sums[j]);
                mean[i] = (sums[i] + priors.class * all[i]) / (count + priors.class);
            }
        }
        (0..N).for_each(|i| scatter[i][i] += priors.slope);
        let slopes =
            matrix::inverse(&scatter).map_or([0.0; N], |inverse| matrix::product(&inverse, &products));
        LengthSlopes { slopes, means }
    }

    /// By how much the ratio to such a request is more than its class's.
    pub(super) fn beyond_mean(&self, class: usize, features: &[f64; N]) -> f64 {
        let mean = &self.means[class];
        (0..N).map(|i| self.slopes[i] * (features[i] - mean[i])).sum()
    }
}

/// The mean features of all classes.
fn mean_of_all<const N: usize>(classes: &[f64]) -> [f64; N] {
    let sum = |at: usize| classes.chunks_exact(2 + N).map(|class| class[at]).sum::<f64>();
    let count = sum(0).max(f64::MIN_POSITIVE);
    std::array::from_fn(|i| sum(2 + i) / count)
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|i| (0..=i).map(move |j| (i, j)))
}
