//! What the models' answers have in common: their principal components.

use crate::data::Row;
use stint_types::catalog::TRAITS;

/// How often each pair of axes is turned at most.
const SWEEPS: usize = 30;
/// Traits that tell successes apart; the one after them is length.
const COMPONENTS: usize = TRAITS - 1;

/// What is to be foretold of each fitted row.
#[derive(Debug)]
pub(super) struct Targets {
    rows: Vec<[f64; TRAITS]>,
}

impl Targets {
    /// The components of the answers to these rows, and how long they are.
    pub(super) fn of(rows: &[Row], train: &[usize]) -> Targets {
        let models = models(rows, train);
        let answers: Vec<Vec<f64>> = train.iter().map(|&row| answers(&rows[row], &models)).collect();
        let centred = centred(answers);
        let axes = axes(&centred);
        let lengths = lengths(rows, train, &models);
        let mut targets = vec![[0.0; TRAITS]; rows.len()];
        for ((&row, answers), length) in train.iter().zip(&centred).zip(lengths) {
            for (value, axis) in targets[row].iter_mut().zip(&axes) {
                *value = answers.iter().zip(axis).map(|(a, b)| a * b).sum();
            }
            targets[row][COMPONENTS] = length;
        }
        Targets { rows: targets }
    }

    pub(super) fn of_row(&self, row: usize) -> &[f64; TRAITS] {
        &self.rows[row]
    }
}

/// The models that answered more than half of the rows.
pub(super) fn models(rows: &[Row], train: &[usize]) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    train
        .iter()
        .flat_map(|&row| rows[row].correct.keys())
        .for_each(|name| *counts.entry(name).or_default() += 1);
    counts
        .into_iter()
        .filter(|(_, count)| *count * 2 > train.len())
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// A model that was not asked would have done as the others did.
fn answers(row: &Row, models: &[String]) -> Vec<f64> {
    let usual = 1.0 - row.difficulty();
    models.iter().map(|model| row.correct.get(model).map_or(usual, |&right| f64::from(right))).collect()
}

fn centred(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let count = rows.len().max(1) as f64;
    for column in 0..rows.first().map_or(0, Vec::len) {
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
        rows.iter_mut().for_each(|row| row[column] -= mean);
    }
    rows
}

/// The directions of most variance, the first first: eigenvectors of the covariance by Jacobi's rotations.
fn axes(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = rows.first().map_or(0, Vec::len);
    let mut matrix = vec![vec![0.0; size]; size];
    for row in rows {
        for (i, a) in row.iter().enumerate() {
            row.iter().zip(&mut matrix[i]).for_each(|(b, entry)| *entry += a * b);
        }
    }
    let mut vectors: Vec<Vec<f64>> =
        (0..size).map(|i| (0..size).map(|j| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    for _ in 0..SWEEPS {
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| matrix[b][b].total_cmp(&matrix[a][a]));
    let axis = |&at: &usize| {
        let axis: Vec<f64> = vectors.iter().map(|row| row[at]).collect();
        let sign = if axis.iter().sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
        axis.into_iter().map(|value| value * sign).collect()
    };
    order.iter().take(COMPONENTS).map(axis).collect()
}

fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    if matrix[p][q].abs() < 1e-12 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cos = 1.0 / (t * t + 1.0).sqrt();
    let sin = t * cos;
    let turn = |a: f64, b: f64| (cos * a - sin * b, sin * a + cos * b);
    for row in matrix.iter_mut().chain(vectors.iter_mut()) {
        (row[p], row[q]) = turn(row[p], row[q]);
    }
    let (above, below) = matrix.split_at_mut(q);
    for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
        (*a, *b) = turn(*a, *b);
    }
}

/// ln(tokens written), above each model's own mean, averaged over the models.
fn lengths(rows: &[Row], train: &[usize], models: &[String]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); train.len()];
    for model in models {
        let logs: Vec<Option<f64>> = train.iter().map(|&row| log_tokens(&rows[row], model)).collect();
        let (sum, count) =
            logs.iter().flatten().fold((0.0, 0.0), |(sum, count), log| (sum + log, count + 1.0));
        let mean = sum / f64::max(count, 1.0);
        for (total, log) in sums.iter_mut().zip(logs) {
            if let Some(log) = log {
                *total = (total.0 + log - mean, total.1 + 1.0);
            }
        }
    }
    sums.into_iter().map(|(sum, count)| sum / f64::max(count, 1.0)).collect()
}

/// ln of how many tokens a model wrote, at four characters each; one at least.
pub(super) fn log_tokens(row: &Row, model: &str) -> Option<f64> {
    row.out_chars.get(model).map(|&characters| (characters / 4.0).max(1.0).ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::SeededRng;

    #[test]
    fn the_first_axis_is_where_the_data_spreads_most() {
        let mut dice = SeededRng::new(3);
        let rows = (0..500).map(|_| {
            let (far, near) = (3.0 * dice.standard_normal(), 0.1 * dice.standard_normal());
            vec![0.6 * far - 0.8 * near, 0.8 * far + 0.6 * near]
        });
        let axes = axes(&centred(rows.collect()));
        assert!((axes[0][0] - 0.6).abs() < 0.02 && (axes[0][1] - 0.8).abs() < 0.02, "{axes:?}");
    }
}
