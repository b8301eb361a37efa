//! Ridge regression with an intercept, over few columns or many.

use crate::sparse::{Sparse, SparseRow, dot};

/// Steps of the conjugate gradients at most, and how small their remainder is wanted.
const STEPS: usize = 200;
const REMAINDER: f64 = 1e-4;

/// A line through the data: an intercept and a weight per column.
#[derive(Debug, Clone, Default)]
pub struct Ridge {
    /// What is foretold where all columns are zero.
    pub intercept: f64,
    /// A weight for each column.
    pub weights: Vec<f64>,
}

impl Ridge {
    /// Least squares with a penalty on the weights, over sparse rows: conjugate gradients on the normal
    /// equations (Hestenes and Stiefel, 1952), with the columns' means taken out on the way.
    pub fn sparse(rows: &Sparse, targets: &[f64], penalty: f64) -> Ridge {
        let count = length(rows.rows.len());
        let average = targets.iter().sum::<f64>() / count;
        let mut means = rows.transposed_times(&vec![1.0; targets.len()]);
        means.iter_mut().for_each(|mean| *mean /= count);
        let centred = |vector: &[f64]| {
            let shift = product(&means, vector);
            let mut times = rows.times(vector);
            times.iter_mut().for_each(|value| *value -= shift);
            times
        };
        let back = |residual: &[f64]| {
            let total: f64 = residual.iter().sum();
            let mut sums = rows.transposed_times(residual);
            sums.iter_mut().zip(&means).for_each(|(sum, mean)| *sum -= mean * total);
            sums
        };
        let wanted = back(&targets.iter().map(|target| target - average).collect::<Vec<_>>());
        let weights = conjugate_gradients(&wanted, |direction| {
            let mut image = back(&centred(direction));
            image.iter_mut().zip(direction).for_each(|(value, step)| *value += penalty * step);
            image
        });
        Ridge { intercept: average - product(&means, &weights), weights }
    }

    /// The same over full rows, by elimination.
    pub fn dense(rows: &[Vec<f64>], targets: &[f64], penalty: f64) -> Ridge {
        Ridge::from_normal(&Ridge::normal(rows), rows, targets, penalty)
    }

    /// The columns' means, and the products of what is above them: the same for all targets.
    pub fn normal(rows: &[Vec<f64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let count = length(rows.len());
        let columns = rows.first().map_or(0, Vec::len);
        let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / count;
        let means: Vec<f64> = (0..columns).map(mean).collect();
        let mut matrix = vec![vec![0.0; columns]; columns];
        for row in rows {
            let row: Vec<f64> = row.iter().zip(&means).map(|(value, mean)| value - mean).collect();
            for (value, entries) in row.iter().zip(&mut matrix) {
                row.iter().zip(entries).for_each(|(other, entry)| *entry += value * other);
            }
        }
        (means, matrix)
    }

    /// The line for one target, by the products of the rows.
    pub fn from_normal(
        (means, matrix): &(Vec<f64>, Vec<Vec<f64>>),
        rows: &[Vec<f64>],
        targets: &[f64],
        penalty: f64,
    ) -> Ridge {
        let average = targets.iter().sum::<f64>() / length(rows.len());
        let mut wanted = vec![0.0; means.len()];
        for (row, target) in rows.iter().zip(targets) {
            let above = row.iter().zip(means).map(|(value, mean)| value - mean);
            wanted.iter_mut().zip(above).for_each(|(sum, value)| *sum += value * (target - average));
        }
        let mut matrix = matrix.clone();
        matrix.iter_mut().enumerate().for_each(|(i, row)| row[i] += penalty);
        let weights = solved(matrix, wanted);
        Ridge { intercept: average - product(means, &weights), weights }
    }

    /// What a sparse row is foretold.
    pub fn of_sparse(&self, row: &SparseRow) -> f64 {
        self.intercept + dot(row, &self.weights)
    }

    /// What a full row is foretold.
    pub fn of_dense(&self, row: &[f64]) -> f64 {
        self.intercept + product(row, &self.weights)
    }
}

fn conjugate_gradients(wanted: &[f64], times: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut solution = vec![0.0; wanted.len()];
    let mut residual = wanted.to_vec();
    let mut direction = wanted.to_vec();
    let mut size = product(&residual, &residual);
    let small = size * REMAINDER * REMAINDER;
    for _ in 0..STEPS {
        if size <= small {
            break;
        }
        let image = times(&direction);
        let step = size / product(&direction, &image);
        solution.iter_mut().zip(&direction).for_each(|(value, along)| *value += step * along);
        residual.iter_mut().zip(&image).for_each(|(value, along)| *value -= step * along);
        let smaller = product(&residual, &residual);
        let keep = smaller / size;
        direction.iter_mut().zip(&residual).for_each(|(along, left)| *along = left + keep * *along);
        size = smaller;
    }
    solution
}

/// Elimination without a search for pivots: with a penalty the matrix is symmetric and positive.
pub fn solved(mut matrix: Vec<Vec<f64>>, mut wanted: Vec<f64>) -> Vec<f64> {
    let size = wanted.len();
    for pivot in 0..size {
        let row = matrix[pivot].clone();
        for below in pivot + 1..size {
            let factor = matrix[below][pivot] / row[pivot];
            for column in pivot..size {
                matrix[below][column] -= factor * row[column];
            }
            wanted[below] -= factor * wanted[pivot];
        }
    }
    for pivot in (0..size).rev() {
        let known: f64 = (pivot + 1..size).map(|column| matrix[pivot][column] * wanted[column]).sum();
        wanted[pivot] = (wanted[pivot] - known) / matrix[pivot][pivot];
    }
    wanted
}

fn product(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
fn length(count: usize) -> f64 {
    count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::SeededRng;

    #[test]
    fn both_ways_find_the_line_that_made_the_data() {
        let mut dice = SeededRng::new(7);
        let rows: Vec<Vec<f64>> =
            (0..300).map(|_| (0..5).map(|_| dice.standard_normal() + 1.0).collect()).collect();
        let line = [0.5, -1.0, 2.0, 0.0, 3.0];
        let targets: Vec<f64> = rows.iter().map(|row| 4.0 + product(row, &line)).collect();
        let sparse = |row: &Vec<f64>| (0..).zip(row.iter().copied()).collect();
        let wide = Sparse { rows: rows.iter().map(sparse).collect(), columns: 5 };
        for fit in [Ridge::dense(&rows, &targets, 1e-6), Ridge::sparse(&wide, &targets, 1e-6)] {
            assert!((fit.intercept - 4.0).abs() < 1e-2, "{fit:?}");
            assert!(fit.weights.iter().zip(line).all(|(a, b)| (a - b).abs() < 1e-2), "{fit:?}");
        }
        let (dense, wide) = (Ridge::dense(&rows, &targets, 50.0), Ridge::sparse(&wide, &targets, 50.0));
        assert!((dense.of_dense(&rows[0]) - wide.of_dense(&rows[0])).abs() < 1e-3);
    }
}
