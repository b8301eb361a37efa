//! How each model responds to the traits as they are foretold of rows that nothing was fitted on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::data::Row;
use crate::ridge::solved;
use stint_decide::estimate::prior::QuestionTraits;
use stint_types::catalog::{AbilityCurve, Loadings, TRAITS};

use super::principal::{log_tokens, models};

/// What draws loadings to zero, in rows of usual traits.
const PENALTY: f64 = 5.0;
const NEWTON_STEPS: usize = 8;
const INPUTS: usize = TRAITS + 1;

/// The loadings of every model that most rows were asked of.
pub(super) fn of(rows: &[Row], foretold: &[(usize, QuestionTraits)]) -> BTreeMap<Arc<str>, Loadings> {
    let train: Vec<usize> = foretold.iter().map(|&(row, _)| row).collect();
    models(rows, &train)
        .into_iter()
        .map(|model| (model.as_str().into(), one(rows, foretold, &model)))
        .collect()
}

fn one(rows: &[Row], foretold: &[(usize, QuestionTraits)], model: &str) -> Loadings {
    let answered: Vec<([f64; INPUTS], f64)> = foretold
        .iter()
        .filter_map(|(row, traits)| Some((inputs(traits), f64::from(*rows[*row].correct.get(model)?))))
        .collect();
    let written: Vec<([f64; INPUTS], f64)> = foretold
        .iter()
        .filter_map(|(row, traits)| Some((inputs(traits), log_tokens(&rows[*row], model)?)))
        .collect();
    let success = logistic(&answered);
    let length = weighted(written.iter().map(|&(inputs, log)| (inputs, log, 1.0)));
    let missed = written.iter().map(|(inputs, log)| (log - product(inputs, &length)).powi(2)).sum::<f64>();
    let (level, traits) = split(&success);
    let (mean, lengths) = split(&length);
    let sigma = (missed / written.len().max(1) as f64).sqrt().max(0.05);
    Loadings { level, traits, length: mean, lengths, sigma }
}

/// The line through all models by the logit of their accuracy.
pub(super) fn curve(rows: &[Row], train: &[usize], models: &BTreeMap<Arc<str>, Loadings>) -> AbilityCurve {
    let mut points: Vec<(f64, [f64; 2 * INPUTS + 1])> = Vec::new();
    for (name, loadings) in models {
        let right: Vec<f64> =
            train.iter().filter_map(|&row| rows[row].correct.get(&**name).copied()).map(f64::from).collect();
        let mean = crate::measure::mean(&right).clamp(0.01, 0.99);
        points.push(((mean / (1.0 - mean)).ln(), flat(loadings)));
    }
    let count = points.len().max(1) as f64;
    let centre = points.iter().map(|point| point.0).sum::<f64>() / count;
    let width = points.iter().map(|point| (point.0 - centre).powi(2)).sum::<f64>().max(1e-9);
    let mut line = [(0.0, 0.0); 2 * INPUTS + 1];
    for (at, (base, slope)) in line.iter_mut().enumerate() {
        let mean = points.iter().map(|point| point.1[at]).sum::<f64>() / count;
        *slope = points.iter().map(|point| (point.0 - centre) * point.1[at]).sum::<f64>() / width;
        *base = mean - *slope * centre;
    }
    AbilityCurve { at_half: shaped(line.map(|point| point.0)), slope: shaped(line.map(|point| point.1)) }
}

fn flat(loadings: &Loadings) -> [f64; 2 * INPUTS + 1] {
    let mut all = [0.0; 2 * INPUTS + 1];
    all[0] = loadings.level;
    all[1..INPUTS].copy_from_slice(&loadings.traits);
    all[INPUTS] = loadings.length;
    all[INPUTS + 1..2 * INPUTS].copy_from_slice(&loadings.lengths);
    all[2 * INPUTS] = loadings.sigma;
    all
}

fn shaped(all: [f64; 2 * INPUTS + 1]) -> Loadings {
    Loadings {
        level: all[0],
        traits: std::array::from_fn(|i| all[1 + i]),
        length: all[INPUTS],
        lengths: std::array::from_fn(|i| all[INPUTS + 1 + i]),
        sigma: all[2 * INPUTS],
    }
}

fn inputs(traits: &QuestionTraits) -> [f64; INPUTS] {
    std::array::from_fn(|i| if i == 0 { 1.0 } else { traits.values[i - 1] })
}

fn split(weights: &[f64; INPUTS]) -> (f64, [f64; TRAITS]) {
    (weights[0], std::array::from_fn(|i| weights[i + 1]))
}

/// Iteratively reweighted least squares.
fn logistic(rows: &[([f64; INPUTS], f64)]) -> [f64; INPUTS] {
    let mut weights = [0.0; INPUTS];
    for _ in 0..NEWTON_STEPS {
        weights = weighted(rows.iter().map(|(inputs, right)| {
            let logit = product(inputs, &weights).clamp(-8.0, 8.0);
            let chance = 1.0 / (1.0 + (-logit).exp());
            let weight = chance * (1.0 - chance);
            (*inputs, logit + (right - chance) / weight, weight)
        }));
    }
    weights
}

fn weighted(rows: impl Iterator<Item = ([f64; INPUTS], f64, f64)>) -> [f64; INPUTS] {
    let mut matrix = vec![vec![0.0; INPUTS]; INPUTS];
    let mut wanted = vec![0.0; INPUTS];
    let mut count = 0.0;
    for (inputs, target, weight) in rows {
        count += 1.0;
        for (i, value) in inputs.iter().enumerate() {
            wanted[i] += weight * value * target;
            inputs.iter().zip(&mut matrix[i]).for_each(|(other, entry)| *entry += weight * value * other);
        }
    }
    let usual =
        matrix.iter().enumerate().skip(1).map(|(i, row)| row[i]).fold(0.0, f64::max) / f64::max(count, 1.0);
    matrix
        .iter_mut()
        .enumerate()
        .for_each(|(i, row)| row[i] += if i == 0 { 1e-9 } else { 1e-9 + PENALTY * usual });
    <[f64; INPUTS]>::try_from(solved(matrix, wanted)).unwrap_or_default()
}

fn product(left: &[f64; INPUTS], right: &[f64; INPUTS]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
