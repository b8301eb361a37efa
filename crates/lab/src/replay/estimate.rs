//! What a policy would have reached, estimated two ways.
//!
//! With π the policy's chance of the logged choice, p the chance that it was chosen with, w = min(π/p, [`WEIGHT_MAX`]), y what
//! came of it, and q what was predicted:
//!
//! - *SNIPS* = Σ w·y / Σ w (Swaminathan and Joachims, *The self-normalized estimator for counterfactual learning*, 2015);
//! - *DR* = mean of Σₐ πₐ·qₐ + w·(y − q) (Dudík, Langford, Li, *Doubly robust policy evaluation and learning*, 2011);
//! - the effective sample size = (Σ w)² / Σ w² (Kish, 1965).

use serde::Serialize;

/// Weights beyond this count as this: what a rare agreement says is bounded.
pub(super) const WEIGHT_MAX: f64 = 20.0;

/// Two sided, 95 % of a normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// One request, as far as one measure of it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayRow {
    /// w.
    pub weight: f64,
    /// y: what came of what was chosen.
    pub observed: f64,
    /// q of what was chosen.
    pub predicted: f64,
    /// Σₐ πₐ·qₐ: what the policy was predicted to reach.
    pub expected: f64,
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// One measure of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PolicyMeasure {
    /// On how many requests it rests.
    pub requests: usize,
    /// How many drawn by the policy itself would say as much.
    pub effective: f64,
    /// What the logged policy reached on the same requests.
    pub logged: Interval,
    /// The self-normalised estimate.
    pub snips: f64,
    /// The doubly robust estimate.
    pub robust: Interval,
    /// The doubly robust estimate of what the policy reaches beyond the logged one, request by request.
    pub gain: Interval,
}

impl PolicyMeasure {
    pub(super) fn of(rows: &[ReplayRow]) -> PolicyMeasure {
        let (sum, squares) = rows
            .iter()
            .fold((0.0, 0.0), |(sum, squares), row| (sum + row.weight, squares + row.weight * row.weight));
        let weighed: f64 = rows.iter().map(|row| row.weight * row.observed).sum();
        let robust = |row: &ReplayRow| row.expected + row.weight * (row.observed - row.predicted);
        PolicyMeasure {
            requests: rows.len(),
            effective: if squares > 0.0 { sum * sum / squares } else { 0.0 },
            logged: Interval::of(rows.iter().map(|row| row.observed)),
            snips: if sum > 0.0 { weighed / sum } else { f64::NAN },
            robust: Interval::of(rows.iter().map(robust)),
            gain: Interval::of(rows.iter().map(|row| robust(row) - row.observed)),
        }
    }
}

impl Interval {
    /// The mean of independent values, by the central limit theorem.
    #[expect(clippy::cast_precision_loss, reason = "statistics of far fewer than 2⁵³ requests")]
    fn of(values: impl Iterator<Item = f64>) -> Interval {
        let (mut count, mut mean, mut squares) = (0_u64, 0.0, 0.0);
        for value in values {
            count += 1;
            let away = value - mean;
            mean += away / count as f64;
            squares += away * (value - mean);
        }
        let n = count as f64;
        let error = if count > 1 { (squares / (n - 1.0) / n).sqrt() } else { f64::INFINITY };
        Interval { mean, low: mean - Z95 * error, high: mean + Z95 * error }
    }
}
