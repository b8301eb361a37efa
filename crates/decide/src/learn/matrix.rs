//! Small symmetric matrices, by Cholesky's decomposition.

/// A symmetric positive matrix of `N` rows.
pub(super) type SquareMatrix<const N: usize> = [[f64; N]; N];

/// The inverse of a symmetric positive matrix; `None` where rounding has left it without one.
pub(super) fn inverse<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let factor = cholesky(matrix)?;
    let mut inverse = [[0.0; N]; N];
    for column in 0..N {
        let mut unit = [0.0; N];
        unit[column] = 1.0;
        let solved = backward(&factor, forward(&factor, unit));
        for row in 0..N {
            inverse[row][column] = solved[row];
        }
    }
    Some(inverse)
}

/// The lower triangle L with `L·Lᵀ = matrix`.
fn cholesky<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let mut factor = [[0.0; N]; N];
    for row in 0..N {
        for column in 0..=row {
            let below: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
            let rest = matrix[row][column] - below;
            factor[row][column] = if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / factor[column][column]
            };
        }
    }
    Some(factor)
}

fn forward<const N: usize>(factor: &SquareMatrix<N>, mut vector: [f64; N]) -> [f64; N] {
    for row in 0..N {
        let before: f64 = (0..row).map(|k| factor[row][k] * vector[k]).sum();
        vector[row] = (vector[row] - before) / factor[row][row];
    }
    vector
}

fn backward<const N: usize>(factor: &SquareMatrix<N>, mut vector: [f64; N]) -> [f64; N] {
    for row in (0..N).rev() {
        let after: f64 = (row + 1..N).map(|k| factor[k][row] * vector[k]).sum();
        vector[row] = (vector[row] - after) / factor[row][row];
    }
    vector
}

/// The product of a matrix and a vector.
pub(super) fn product<const N: usize>(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|row| dot(&matrix[row], vector))
}

/// The sum of the products.
pub(super) fn dot<const N: usize>(left: &[f64; N], right: &[f64; N]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
