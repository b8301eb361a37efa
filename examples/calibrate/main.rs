//! Fits `crates/decide/src/estimate/calibration.toml` to a model's traces, and tells on standard error how well it does on
//! traces that it was not fitted to.
//!
//! ```text
//! cargo run --example calibrate -- reasoner traces.jsonl > crates/decide/src/estimate/calibration.toml
//! ```
//!
//! A trace is one JSON line: `{"question", "thinking_tokens", "solution_tokens", "correct": {"0": bool, "8":
//! bool, …, "full": bool}}`, where the keys of `correct` are thinking budgets. `"cut": true` beside them says that the
//! thought was cut at `thinking_tokens`.

mod report;
mod traces;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use stint_decide::estimate::{CalibrationTrace, fit};
use stint_types::catalog::{Calibration, Feature, Features, ModelCalibration};

/// Every so manieth trace is held out.
const HELD_OUT: usize = 5;
/// Fewer say too little about fourteen weights.
const TRACES_LEAST: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, path] = arguments.as_slice() else {
        return Err("usage: calibrate MODEL TRACES.jsonl".into());
    };
    let traces = traces::read(path)?;
    if traces.len() < TRACES_LEAST {
        return Err(format!("{path} has {} traces, a fit takes {TRACES_LEAST} at least", traces.len()).into());
    }
    let (held_out, fitted) = split(&traces);
    report::write(&mut std::io::stderr(), &fit(&fitted), &held_out)?;
    let models = [(model.as_str().into(), fit(&traces))].into();
    let calibration = Calibration {
        prior: prior(),
        models,
        priors: Arc::default(),
        abilities: BTreeMap::new(),
        thoughts: BTreeMap::new(),
        curves: BTreeMap::new(),
    };
    let command = format!("cargo run --example calibrate -- {model} {path}");
    Ok(std::io::stdout().write_all(document(&calibration, &command)?.as_bytes())?)
}

fn split(traces: &[CalibrationTrace]) -> (Vec<CalibrationTrace>, Vec<CalibrationTrace>) {
    let (held_out, fitted): (Vec<_>, Vec<_>) =
        traces.iter().enumerate().partition(|(i, _)| i % HELD_OUT == 0);
    let plain = |numbered: Vec<(usize, &CalibrationTrace)>| {
        numbered.into_iter().map(|(_, trace)| trace.clone()).collect()
    };
    (plain(held_out), plain(fitted))
}

/// For a model never seen: a judgement, not a fit. Some 400 tokens of thought for a short question and more
/// for a long or technical one, within a factor of three either way; right four times in five after a whole
/// thought and half the time without one. A fifth of a thought keeps 59 % of what it gains: published curves of reasoning models
/// keep 52 to 74 %.
fn prior() -> ModelCalibration {
    let features = |values: &[(Feature, f64)]| {
        let mut features = Features::default();
        values.iter().for_each(|&(feature, value)| features[feature] = value);
        features
    };
    ModelCalibration {
        sigma: 1.1,
        bend: 1.0,
        saturation: 4.0,
        solution: 250.0,
        confidence: 0.2,
        thinking: features(&[
            (Feature::Bias, 5.0),
            (Feature::Length, 0.2),
            (Feature::Steps, 0.2),
            (Feature::Code, 0.5),
        ]),
        done: features(&[(Feature::Bias, 1.386)]),
        blind: features(&[(Feature::Bias, 0.0)]),
        domain: stint_types::catalog::TrainingDomain::default(),
    }
}

fn document(calibration: &Calibration, command: &str) -> Result<String, Box<dyn Error>> {
    let mut rounded = calibration.clone();
    std::iter::once(&mut rounded.prior).chain(rounded.models.values_mut()).for_each(round);
    Ok(format!(
        "# What estimate knows of models before it has learned anything. Written by\n#\n#     {command} > \
         crates/decide/src/estimate/calibration.toml\n#\n# The prior is a judgement; the model's own coefficients are fitted to its \
         traces (for the embedded\n# reasoner, those of models/train/traces.py).\n\n{}",
        toml::to_string(&rounded)?
    ))
}

/// Four decimals are more than any fit knows.
fn round(model: &mut ModelCalibration) {
    let four = |value: &mut f64| *value = (*value * 1e4).round() / 1e4;
    let weights = [&mut model.thinking, &mut model.done, &mut model.blind];
    weights.into_iter().flat_map(|features| features.0.iter_mut()).for_each(four);
    [&mut model.sigma, &mut model.solution, &mut model.confidence].into_iter().for_each(four);
}
