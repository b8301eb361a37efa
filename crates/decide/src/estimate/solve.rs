//! Small linear models: weighted least squares, and logistic regression by repeating it.

use stint_types::catalog::Features;

const N: usize = Features::COUNT;
/// How strongly weights are drawn to zero, in units of one observation. The bias is left alone.
const RIDGE: f64 = 0.5;
/// Newton's method on a convex loss; twenty steps are far more than it needs.
const NEWTON_STEPS: usize = 20;

/// One observation.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightedObservation {
    pub features: Features,
    pub target: f64,
    pub weight: f64,
}

/// The coefficients with the least weighted squared error, with a ridge penalty: the normal equations
/// `(XᵀWX + R)·b = XᵀWy`.
pub(super) fn least_squares(observations: impl IntoIterator<Item = WeightedObservation>) -> Features {
    let mut matrix = [[0.0; N]; N];
    let mut vector = [0.0; N];
    for WeightedObservation { features: Features(x), target, weight } in observations {
        for i in 0..N {
            vector[i] += weight * x[i] * target;
            for j in 0..N {
                matrix[i][j] += weight * x[i] * x[j];
            }
        }
    }
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] += if i == 0 { 1e-9 } else { RIDGE };
    }
    Features(solve(matrix, vector))
}

/// The coefficients of log-odds by iteratively reweighted least squares (Nelder and Wedderburn,
/// *Generalized Linear Models*, 1972).
pub(super) fn logistic(observations: &[(Features, bool)]) -> Features {
    let mut coefficients = Features::default();
    for _ in 0..NEWTON_STEPS {
        coefficients = least_squares(observations.iter().map(|&(features, right)| {
            let logit = features.dot(&coefficients).clamp(-12.0, 12.0);
            let chance = 1.0 / (1.0 + (-logit).exp());
            let weight = chance * (1.0 - chance);
            let surprise = if right { 1.0 - chance } else { -chance };
            WeightedObservation { features, target: logit + surprise / weight, weight }
        }));
    }
    coefficients
}

/// Gauss–Jordan elimination. The ridge keeps every pivot of the symmetric positive matrix above zero.
fn solve(mut matrix: [[f64; N]; N], mut vector: [f64; N]) -> [f64; N] {
    for pivot in 0..N {
        let row = matrix[pivot];
        for other in 0..N {
            if other != pivot {
                let factor = matrix[other][pivot] / row[pivot];
                for (value, above) in matrix[other].iter_mut().zip(row) {
                    *value -= factor * above;
                }
                vector[other] -= factor * vector[pivot];
            }
        }
    }
    std::array::from_fn(|i| vector[i] / matrix[i][i])
}
