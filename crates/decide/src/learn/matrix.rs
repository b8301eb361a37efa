//! Small symmetric matrices, by Cholesky's decomposition.
//!
//! Many sums are worked on side by side, each term by term: one sum alone is a long row of steps that wait for each other. Every sum
//! adds its terms in the same order as alone, so that the results are the same to the last bit.

/// A symmetric positive matrix of `N` rows.
pub(super) type SquareMatrix<const N: usize> = [[f64; N]; N];

/// What sums begin with: zero, so that the first term stays as it is.
const NOTHING: f64 = -0.0;

/// The inverse of a symmetric positive matrix; `None` where rounding has left it without one.
pub(super) fn inverse<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let lower = inverse_of_lower(&cholesky(matrix)?);
    let mut inverse = [[NOTHING; N]; N];
    for (at, row) in lower.iter().enumerate() {
        for i in 0..=at {
            add_multiple(&mut inverse[i][..=i], &row[..=i], row[i]);
        }
    }
    (0..N).for_each(|i| (0..i).for_each(|j| inverse[j][i] = inverse[i][j]));
    Some(inverse)
}

/// The inverse of a lower triangle whose columns these are, as rows.
fn inverse_of_lower<const N: usize>(columns: &SquareMatrix<N>) -> SquareMatrix<N> {
    let mut inverse = [[0.0; N]; N];
    for at in 0..N {
        let (above, rest) = inverse.split_at_mut(at);
        let mut known = [NOTHING; N];
        for (k, row) in above.iter().enumerate() {
            add_multiple(&mut known[..=k], &row[..=k], columns[k][at]);
        }
        let own = columns[at][at];
        rest[0][..at].iter_mut().zip(&known).for_each(|(entry, known)| *entry = -known / own);
        rest[0][at] = own.recip();
    }
    inverse
}

/// The vector that a symmetric, positive definite matrix makes this one of, and the logarithm of its determinant.
pub(super) fn solve<const N: usize>(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> Option<([f64; N], f64)> {
    let columns = cholesky(matrix)?;
    let (mut solution, mut known, mut log_determinant) = (*vector, [NOTHING; N], 0.0);
    for row in 0..N {
        let own = columns[row][row];
        solution[row] = (solution[row] - known[row]) / own;
        add_multiple(&mut known[row + 1..], &columns[row][row + 1..], solution[row]);
        log_determinant += 2.0 * own.ln();
    }
    for row in (0..N).rev() {
        solution[row] /= columns[row][row];
        let found = solution[row];
        (0..row).for_each(|before| solution[before] -= columns[before][row] * found);
    }
    Some((solution, log_determinant))
}

/// The columns of the lower triangle L with `L·Lᵀ = matrix`, of which only the lower triangle is read.
fn cholesky<const N: usize>(matrix: &SquareMatrix<N>) -> Option<SquareMatrix<N>> {
    let mut columns = [[0.0; N]; N];
    for at in 0..N {
        let (before, rest) = columns.split_at_mut(at);
        let mut below = [NOTHING; N];
        before.iter().for_each(|column| add_multiple(&mut below[at..], &column[at..], column[at]));
        let square = matrix[at][at] - below[at];
        if square.is_nan() || square <= 0.0 {
            return None;
        }
        let own = square.sqrt();
        rest[0][at] = own;
        (at + 1..N).for_each(|row| rest[0][row] = (matrix[row][at] - below[row]) / own);
    }
    Some(columns)
}

/// Adds a multiple of some values to as many sums.
#[inline(always)]
fn add_multiple(sums: &mut [f64], values: &[f64], times: f64) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += times * value);
}

/// The product of a symmetric matrix and a vector.
pub(super) fn product<const N: usize>(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> [f64; N] {
    let mut sums = [NOTHING; N];
    matrix.iter().zip(vector).for_each(|(row, times)| add_multiple(&mut sums, row, *times));
    sums
}

/// The sum of the products.
pub(super) fn dot<const N: usize>(left: &[f64; N], right: &[f64; N]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// A matrix with these on its diagonal, and zeros elsewhere.
pub(super) fn diagonal<const N: usize>(values: &[f64; N]) -> SquareMatrix<N> {
    let mut matrix = [[0.0; N]; N];
    (0..N).for_each(|i| matrix[i][i] = values[i]);
    matrix
}

#[cfg(test)]
mod tests {
    use stint_types::units::SeededRng;

    use super::*;

    const N: usize = 13;

    /// A symmetric positive matrix and a vector.
    fn example(rng: &mut SeededRng) -> (SquareMatrix<N>, [f64; N]) {
        let mut number = || rng.next_f64() - 0.5;
        let rows: [[f64; N]; N] = std::array::from_fn(|_| std::array::from_fn(|_| number()));
        let mut matrix: SquareMatrix<N> =
            std::array::from_fn(|i| std::array::from_fn(|j| dot(&rows[i], &rows[j])));
        (0..N).for_each(|i| matrix[i][i] += 0.1);
        (matrix, std::array::from_fn(|_| number()))
    }

    fn sum_of_products(left: &[f64], right: &[f64]) -> f64 {
        left.iter().zip(right).map(|(a, b)| a * b).sum()
    }

    /// The rows of the lower triangle, one entry after another.
    fn factor(matrix: &SquareMatrix<N>) -> SquareMatrix<N> {
        let mut factor = [[0.0; N]; N];
        for row in 0..N {
            for column in 0..=row {
                let rest =
                    matrix[row][column] - sum_of_products(&factor[row][..column], &factor[column][..column]);
                factor[row][column] = if row == column { rest.sqrt() } else { rest / factor[column][column] };
            }
        }
        factor
    }

    /// The inverse, one entry after another.
    fn plain_inverse(matrix: &SquareMatrix<N>) -> SquareMatrix<N> {
        let factor = factor(matrix);
        let mut columns = [[0.0; N]; N];
        for (i, column) in columns.iter_mut().enumerate() {
            column[i] = factor[i][i].recip();
            for row in i + 1..N {
                column[row] = -sum_of_products(&factor[row][i..row], &column[i..row]) / factor[row][row];
            }
        }
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                let from = i.max(j);
                sum_of_products(&columns[i][from..], &columns[j][from..])
            })
        })
    }

    fn plain_solution(matrix: &SquareMatrix<N>, vector: &[f64; N]) -> [f64; N] {
        let (factor, mut solution) = (factor(matrix), *vector);
        for row in 0..N {
            let known = sum_of_products(&factor[row][..row], &solution[..row]);
            solution[row] = (solution[row] - known) / factor[row][row];
        }
        for row in (0..N).rev() {
            solution[row] /= factor[row][row];
            let found = solution[row];
            solution.iter_mut().zip(&factor[row][..row]).for_each(|(rest, entry)| *rest -= entry * found);
        }
        solution
    }

    fn bits(matrix: &SquareMatrix<N>) -> [[u64; N]; N] {
        matrix.map(|row| row.map(f64::to_bits))
    }

    #[test]
    fn side_by_side_sums_are_what_they_are_one_by_one() {
        let mut rng = SeededRng::new(5);
        for _ in 0..200 {
            let (matrix, vector) = example(&mut rng);
            let found = inverse(&matrix).unwrap();
            assert_eq!(bits(&found), bits(&plain_inverse(&matrix)));
            let (solution, _) = solve(&matrix, &vector).unwrap();
            assert_eq!(solution.map(f64::to_bits), plain_solution(&matrix, &vector).map(f64::to_bits));
            let plain = std::array::from_fn(|row| dot(&found[row], &vector));
            assert_eq!(product(&found, &vector).map(f64::to_bits), plain.map(f64::to_bits));
        }
    }

    #[test]
    fn what_is_not_positive_has_no_inverse() {
        let (mut matrix, _) = example(&mut SeededRng::new(6));
        matrix[4][4] = -1.0;
        assert!(inverse(&matrix).is_none());
    }
}
