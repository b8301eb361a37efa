//! How a length goes with its request, around the mean of its class.
//!
//! A ridge of how long it was beside the predicted length on what the prior says of the request, with what is shared by all
//! of a class taken out of both: the mean stays the class's own, the slopes are those within classes, added up over them.

use super::features::CLASSES;
use super::matrix::{self, SquareMatrix};

/// For how many outcomes what was believed beforehand counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlopePriors {
    /// In a slope, which is zero then, with features as far from their mean as one: of several what the outcomes themselves make the
    /// most likely, so that where what is counted tells much it is believed soon.
    pub slopes: &'static [f64],
    /// In the mean of a class, which is that of all.
    pub class: f64,
}

/// How many sums slopes of so many features take: Σ z·zᵀ and Σ z·ratio of all classes, then of each how many, Σ ratio and Σ z.
pub(super) const fn sums_of(features: usize) -> usize {
    features * (features + 1) / 2 + features + (2 + features) * CLASSES
}

/// What outcomes say of slopes.
#[derive(Debug, Clone, PartialEq)]
struct SlopeEvidence<const N: usize> {
    /// Σ (z − z̄)·(z − z̄)ᵀ, Σ (z − z̄)·ratio and Σ (ratio − mean)², with the means of each class.
    scatter: SquareMatrix<N>,
    products: [f64; N],
    square: f64,
    /// By class, how many outcomes, and Σ z.
    counts: [f64; CLASSES],
    features: [[f64; N]; CLASSES],
}

/// By how much a length is longer than the mean of its class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LengthSlopes<const N: usize> {
    slopes: [f64; N],
    /// The features that the mean length of each class belongs to.
    means: [[f64; N]; CLASSES],
}

/// Adds a length that was `ratio` times as long as predicted, and counts as so much of an outcome.
pub(super) fn add<const N: usize>(
    sums: &mut [f64],
    class: usize,
    features: &[f64; N],
    (ratio, weight): (f64, f64),
) {
    let (triangle, rest) = sums.split_at_mut(N * (N + 1) / 2);
    let (products, classes) = rest.split_at_mut(N);
    for (sum, (i, j)) in triangle.iter_mut().zip(pairs(N)) {
        *sum += weight * features[i] * features[j];
    }
    products.iter_mut().zip(features).for_each(|(sum, z)| *sum += weight * z * ratio);
    if let Some([count, ratios, means @ ..]) = classes.chunks_exact_mut(2 + N).nth(class) {
        *count += weight;
        *ratios += weight * ratio;
        means.iter_mut().zip(features).for_each(|(sum, z)| *sum += weight * z);
    }
}

impl<const N: usize> SlopeEvidence<N> {
    /// What follows from the sums, where ratios vary so much about the mean of their class.
    fn of(sums: &[f64], variance: f64) -> SlopeEvidence<N> {
        let (triangle, rest) = sums.split_at(N * (N + 1) / 2);
        let (products, classes) = rest.split_at(N);
        let mut evidence = SlopeEvidence {
            scatter: [[0.0; N]; N],
            products: [0.0; N],
            square: 0.0,
            counts: [0.0; CLASSES],
            features: [[0.0; N]; CLASSES],
        };
        for (&sum, (i, j)) in triangle.iter().zip(pairs(N)) {
            (evidence.scatter[i][j], evidence.scatter[j][i]) = (sum, sum);
        }
        evidence.products.copy_from_slice(products);
        for (at, class) in classes.chunks_exact(2 + N).enumerate() {
            let (count, ratios, sums) = (class[0], class[1], &class[2..]);
            // Nothing is to be taken out for a class that was never met.
            if count <= 0.0 {
                continue;
            }
            evidence.counts[at] = count;
            evidence.features[at].copy_from_slice(sums);
            for i in 0..N {
                let own = sums[i] / count.max(f64::MIN_POSITIVE);
                evidence.products[i] -= own * ratios;
                (0..N).for_each(|j| evidence.scatter[i][j] -= own * sums[j]);
            }
        }
        evidence.square = variance * evidence.count();
        evidence
    }

    /// How many outcomes it rests on.
    fn count(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The slopes, with the prior that makes the outcomes the most likely (Bishop, *Pattern Recognition and Machine Learning*, 2006,
    /// section 3.5).
    fn slopes(&self, priors: &[f64]) -> [f64; N] {
        // Of a model that never thinks nothing goes with anything: each prior makes of that the same slopes, none.
        if self.products.iter().all(|product| product.to_bits() == 0) {
            return [0.0; N];
        }
        let fits = priors.iter().filter_map(|&prior| self.fit(prior));
        fits.max_by(|one, other| one.1.total_cmp(&other.1)).map_or([0.0; N], |(slopes, _)| slopes)
    }

    /// The slopes with a prior, and the logarithm of how likely that makes the outcomes.
    #[expect(clippy::cast_precision_loss, reason = "a few features")]
    fn fit(&self, prior: f64) -> Option<([f64; N], f64)> {
        /// The variance about the slopes that is expected beforehand, for so many outcomes.
        const USUAL: (f64, f64) = (20.0, 0.43);
        let mut precision = self.scatter;
        (0..N).for_each(|i| precision[i][i] += prior);
        let (slopes, log_determinant) = matrix::solve(&precision, &self.products)?;
        let left = (self.square - matrix::dot(&slopes, &self.products)).max(0.0) + USUAL.0 * USUAL.1;
        let count = self.count() + USUAL.0;
        let spread = N as f64 * prior.ln() - log_determinant;
        Some((slopes, (spread - count * (left / count).ln()) / 2.0))
    }

    /// The mean features of all classes.
    fn mean(&self) -> [f64; N] {
        let count = self.count().max(f64::MIN_POSITIVE);
        std::array::from_fn(|i| self.features.iter().map(|class| class[i]).sum::<f64>() / count)
    }
}

impl<const N: usize> LengthSlopes<N> {
    /// What follows from the sums, where ratios vary so much about the mean of their class, given how much the priors count.
    pub(super) fn of(sums: &[f64], variance: f64, priors: SlopePriors) -> LengthSlopes<N> {
        let evidence = SlopeEvidence::of(sums, variance);
        let usual = evidence.mean();
        let mut means = [usual; CLASSES];
        for ((mean, sums), count) in means.iter_mut().zip(&evidence.features).zip(&evidence.counts) {
            for i in 0..N {
                mean[i] = (sums[i] + priors.class * usual[i]) / (count + priors.class);
            }
        }
        LengthSlopes { slopes: evidence.slopes(priors.slopes), means }
    }

    /// By how much the ratio to such a request is more than its class's.
    pub(super) fn beyond_mean(&self, class: usize, features: &[f64; N]) -> f64 {
        let mean = &self.means[class];
        (0..N).map(|i| self.slopes[i] * (features[i] - mean[i])).sum()
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|i| (0..=i).map(move |j| (i, j)))
}
