//! How well a fit foretells traces that it has not seen.

use std::collections::BTreeMap;
use std::io::{self, Write};

use stint_decide::estimate::{CalibrationTrace, demand, features};
use stint_types::catalog::{LogNormal, ModelCalibration, ModelDemand};
use stint_types::units::Tokens;

/// Writes the figures.
pub(crate) fn write(
    out: &mut impl Write,
    fit: &ModelCalibration,
    held_out: &[CalibrationTrace],
) -> io::Result<()> {
    let demands: Vec<ModelDemand> = held_out.iter().map(|t| demand(fit, &features(&t.question))).collect();
    let predicted: Vec<f64> = demands.iter().map(|demand| demand.thinking.mu).collect();
    let actual: Vec<f64> = held_out.iter().map(CalibrationTrace::log_length).collect();
    writeln!(out, "held out: {} traces", held_out.len())?;
    writeln!(
        out,
        "length: R² of ln L {:.3}, Spearman {:.3}, sigma {:.3}, median L {:.0}",
        explained(&predicted, &actual),
        spearman(&predicted, &actual),
        fit.sigma,
        median(&actual).exp()
    )?;
    let shape = 1.0 / (fit.sigma.powi(2).exp_m1());
    let lognormal = mean(demands.iter().zip(&actual).map(|(d, &l)| density_lognormal(&d.thinking, l)));
    let gamma = mean(demands.iter().zip(&actual).map(|(d, &l)| density_gamma(&d.thinking, shape, l)));
    writeln!(
        out,
        "mean log-likelihood of L: lognormal {lognormal:.4}, gamma of the same moments {gamma:.4}"
    )?;
    let below = |share: fn(&ModelDemand) -> f64| {
        mean(demands.iter().zip(held_out).map(|(d, t)| f64::from(u8::from(t.thinking.as_f64() <= share(d)))))
    };
    writeln!(
        out,
        "thoughts within P50 {:.3}, P90 {:.3}, P99 {:.3}; bend {}, saturation {}",
        below(|demand| demand.thinking.median()),
        below(ModelDemand::thinking_p90),
        below(ModelDemand::thinking_p99),
        fit.bend,
        fit.saturation
    )?;
    successes(out, &demands, held_out)
}

/// Predicted against actual success, per budget; and the Brier score against that of the budget's mean.
fn successes(out: &mut impl Write, demands: &[ModelDemand], held_out: &[CalibrationTrace]) -> io::Result<()> {
    let mut budgets: BTreeMap<Tokens, Vec<(f64, f64)>> = BTreeMap::new();
    for (demand, trace) in demands.iter().zip(held_out) {
        let whole = (Tokens::MAX, trace.right);
        for (budget, right) in trace.cuts.iter().map(|cut| (cut.budget, cut.right)).chain([whole]) {
            let actual = f64::from(u8::from(right));
            budgets.entry(budget).or_default().push((demand.success(budget).get(), actual));
        }
    }
    for (budget, pairs) in budgets {
        let name = if budget == Tokens::MAX { "full".into() } else { budget.to_string() };
        let base = mean(pairs.iter().map(|pair| pair.1));
        let brier = mean(pairs.iter().map(|pair| (pair.0 - pair.1).powi(2)));
        writeln!(
            out,
            "budget {name:>4}: predicted {:.3}, actual {base:.3}, Brier {brier:.3} (constant {:.3})",
            mean(pairs.iter().map(|pair| pair.0)),
            base * (1.0 - base)
        )?;
    }
    Ok(())
}

fn density_lognormal(length: &LogNormal, log: f64) -> f64 {
    let z = (log - length.mu) / length.sigma;
    -z * z / 2.0 - (length.sigma * std::f64::consts::TAU.sqrt()).ln() - log
}

/// The gamma with the lognormal's mean and variance: its shape is 1/(exp(sigma²) − 1).
fn density_gamma(length: &LogNormal, shape: f64, log: f64) -> f64 {
    let scale = length.mean() / shape;
    (shape - 1.0) * log - log.exp() / scale - shape * scale.ln() - log_gamma(shape)
}

/// ln Γ(x) for x > 0: Stirling's series after shifting x above 10 (Abramowitz and Stegun, 6.1.41).
fn log_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return log_gamma(x + 1.0) - x.ln();
    }
    (x - 0.5) * x.ln() - x + std::f64::consts::TAU.ln() / 2.0 + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn explained(predicted: &[f64], actual: &[f64]) -> f64 {
    let average = mean(actual.iter().copied());
    let residual = mean(predicted.iter().zip(actual).map(|(p, a)| (p - a).powi(2)));
    1.0 - residual / mean(actual.iter().map(|a| (a - average).powi(2)))
}

/// The correlation of the ranks; ties share the mean of theirs.
fn spearman(left: &[f64], right: &[f64]) -> f64 {
    let (left, right) = (ranks(left), ranks(right));
    let (a, b) = (mean(left.iter().copied()), mean(right.iter().copied()));
    let product =
        |x: &[f64], x0: f64, y: &[f64], y0: f64| mean(x.iter().zip(y).map(|(x, y)| (x - x0) * (y - y0)));
    product(&left, a, &right, b) / (product(&left, a, &left, a) * product(&right, b, &right, b)).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let (below, through) =
            (sorted.partition_point(|x| x < value), sorted.partition_point(|x| x <= value));
        f64::from(u32::try_from(below + through).unwrap_or(u32::MAX)) / 2.0
    };
    values.iter().map(rank).collect()
}
