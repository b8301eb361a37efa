//! Small symmetric matrices, by Cholesky's decomposition.

/// A symmetric positive matrix of `N` rows.
pub(super) type SquareMatrix<const N: usize> = [[f64; N]; N];

/// The inverse of a symmetric positive matrix; `None` where rounding has left it without one.
pub(super) fn inverse<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let factor = cholesky(matrix)?;
    // Row `i` holds column `i` of L⁻¹, which is zero above the diagonal.
    let mut columns = [[0.0; N]; N];
    for (i, column) in columns.iter_mut().enumerate() {
        column[i] = factor[i][i].recip();
        for row in i + 1..N {
            column[row] = -sum_of_products(&factor[row][i..row], &column[i..row]) / factor[row][row];
        }
    }
    let mut inverse = [[0.0; N]; N];
    for i in 0..N {
        for j in 0..=i {
            let entry = sum_of_products(&columns[i][i..], &columns[j][i..]);
            (inverse[i][j], inverse[j][i]) = (entry, entry);
        }
    }
    Some(inverse)
}

/// The vector that a symmetric, positive definite matrix makes this one of, and the logarithm of its determinant.
pub(super) fn solve<const N: usize>(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> Option<([f64; N], f64)> {
    let factor = cholesky(matrix)?;
    let (mut solution, mut log_determinant) = (*vector, 0.0);
    for row in 0..N {
        let known = sum_of_products(&factor[row][..row], &solution[..row]);
        solution[row] = (solution[row] - known) / factor[row][row];
        log_determinant += 2.0 * factor[row][row].ln();
    }
    for row in (0..N).rev() {
        solution[row] /= factor[row][row];
        let found = solution[row];
        solution.iter_mut().zip(&factor[row][..row]).for_each(|(rest, entry)| *rest -= entry * found);
    }
    Some((solution, log_determinant))
}

/// The lower triangle L with `L·Lᵀ = matrix`.
fn cholesky<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let mut factor = [[0.0; N]; N];
    for row in 0..N {
        for column in 0..=row {
            let below = sum_of_products(&factor[row][..column], &factor[column][..column]);
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

fn sum_of_products(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// The product of a matrix and a vector.
pub(super) fn product<const N: usize>(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|row| dot(&matrix[row], vector))
}

/// The sum of the products.
pub(super) fn dot<const N: usize>(left: &[f64; N], right: &[f64; N]) -> f64 {
    sum_of_products(left, right)
}

/// A matrix with these on its diagonal, and zeros elsewhere.
pub(super) fn diagonal<const N: usize>(values: &[f64; N]) -> SquareMatrix<N> {
    let mut matrix = [[0.0; N]; N];
    (0..N).for_each(|i| matrix[i][i] = values[i]);
    matrix
}
