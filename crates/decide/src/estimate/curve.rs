//! Success against thinking budget, measured on an operator's own tasks: the points, and what they say beyond the prediction.

use stint_types::catalog::{CurvePoint, MeasuredCurve, ModelDemand};
use stint_types::units::{Chance, Tokens};

use super::cut_curve::{CutAnswer, likeliest_curve};
use super::fit::truncated_moments;
use super::{logistic, mean};

/// One answer to one task under one thinking budget.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveTrial {
    /// The thinking budget.
    pub budget: Tokens,
    /// How long it thought.
    pub thought: Tokens,
    /// True if it was cut there.
    pub is_cut: bool,
    /// How long it answered.
    pub solution: Tokens,
    /// Whether that was right.
    pub right: bool,
    /// What it cost, in dollars.
    pub cost: f64,
    /// What was predicted of the task beforehand.
    pub predicted: ModelDemand,
}

/// The 95 % interval of a share (Wilson, *Probable inference, the law of succession, and statistical inference*, 1927).
pub fn wilson_interval(right: u32, of: u32) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if of == 0 {
        return (0.0, 1.0);
    }
    let (count, share) = (f64::from(of), f64::from(right) / f64::from(of));
    let scale = 1.0 + Z * Z / count;
    let middle = (share + Z * Z / (2.0 * count)) / scale;
    let half = Z / scale * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// What was measured, by rising budgets.
pub fn curve_points(trials: &[CurveTrial]) -> Vec<CurvePoint> {
    let mut budgets: Vec<Tokens> = trials.iter().map(|trial| trial.budget).collect();
    budgets.sort_unstable();
    budgets.dedup();
    let point = |budget: Tokens| {
        let under: Vec<&CurveTrial> = trials.iter().filter(|trial| trial.budget == budget).collect();
        let (answers, right) = (count(under.len()), count(under.iter().filter(|trial| trial.right).count()));
        let (low, high) = wilson_interval(right, answers);
        CurvePoint {
            budget,
            answers,
            right,
            low,
            high,
            thought: mean(under.iter().map(|trial| trial.thought.as_f64())),
            cut: mean(under.iter().map(|trial| f64::from(u8::from(trial.is_cut)))),
            cost_usd: mean(under.iter().map(|trial| trial.cost)),
        }
    };
    budgets.into_iter().map(point).collect()
}

/// What a measurement says beyond the prediction; nothing where no thought was measured.
pub fn fit_measured_curve(trials: &[CurveTrial]) -> Option<MeasuredCurve> {
    /// However many answers there were, requests to come differ from the tasks.
    const SPREAD_LEAST: f64 = 0.03;
    let largest = trials.iter().map(|trial| trial.budget).max().filter(|most| *most > Tokens::ZERO)?;
    let longest: Vec<&CurveTrial> = trials.iter().filter(|trial| trial.budget == largest).collect();
    let finished: Vec<&CurveTrial> = longest.iter().copied().filter(|trial| !trial.is_cut).collect();
    let ended = if finished.is_empty() { &longest } else { &finished };
    let unthought: Vec<&CurveTrial> = trials.iter().filter(|trial| trial.budget == Tokens::ZERO).collect();
    let done_shift = level_shift(ended, |demand| demand.done);
    let blind_shift =
        if unthought.is_empty() { done_shift } else { level_shift(&unthought, |demand| demand.blind) };
    let (thought_shift, sigma) = length_shift(&longest);
    let share = smoothed(ended);
    let written: f64 = trials.iter().map(|trial| trial.solution.as_f64()).sum();
    let expected: f64 = trials.iter().map(|trial| trial.predicted.solution.as_f64()).sum();
    let usual = &longest.first()?.predicted;
    let curve = MeasuredCurve {
        done_shift,
        blind_shift,
        spread: (share * (1.0 - share) / f64::from(count(ended.len()) + 1)).sqrt().hypot(SPREAD_LEAST),
        thought_shift,
        sigma,
        solution_factor: (written / expected.max(1.0)).clamp(1e-3, 1e3),
        bend: usual.bend,
        saturation: usual.saturation,
    };
    Some(with_rise(curve, trials))
}

/// The same with the rise between both levels that makes the cut thoughts' answers likeliest.
fn with_rise(curve: MeasuredCurve, trials: &[CurveTrial]) -> MeasuredCurve {
    /// Fewer cut thoughts tell nothing of it.
    const CUTS_LEAST: usize = 20;
    let corrected = |trial: &CurveTrial| {
        let mut demand = trial.predicted.clone();
        curve.apply(&mut demand);
        CutAnswer { demand, thought: trial.thought, right: trial.right }
    };
    let mut cuts: Vec<CutAnswer> =
        trials.iter().filter(|trial| trial.is_cut && trial.thought > Tokens::ZERO).map(corrected).collect();
    if cuts.len() < CUTS_LEAST {
        return curve;
    }
    let (bend, saturation) = likeliest_curve(&mut cuts);
    MeasuredCurve { bend, saturation, ..curve }
}

/// What the logit is more than predicted, so that the predictions' mean is the share that was right.
fn level_shift(trials: &[&CurveTrial], predicted: impl Fn(&ModelDemand) -> Chance) -> f64 {
    /// No measurement tells a level beyond that from what was predicted.
    const SHIFT_MAX: f64 = 12.0;
    let share = smoothed(trials);
    let logits: Vec<f64> = trials.iter().map(|trial| logit(predicted(&trial.predicted))).collect();
    let reached = |shift: f64| mean(logits.iter().map(|logit| logistic(logit + shift)));
    let (mut low, mut high) = (-SHIFT_MAX, SHIFT_MAX);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if reached(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The share that was right, as if one half more had been (Krichevsky and Trofimov, 1981).
fn smoothed(trials: &[&CurveTrial]) -> f64 {
    let right = count(trials.iter().filter(|trial| trial.right).count());
    (f64::from(right) + 0.5) / (f64::from(count(trials.len())) + 1.0)
}

/// What the logarithm of a thought is more than predicted, and its standard deviation about that. What was cut takes its
/// expectation under the last of them, in turns, as in `fit`.
fn length_shift(trials: &[&CurveTrial]) -> (f64, f64) {
    const TURNS: usize = 20;
    let offs: Vec<f64> = trials
        .iter()
        .map(|trial| trial.thought.as_f64().max(1.0).ln() - trial.predicted.thinking.mu)
        .collect();
    let (mut shift, mut sigma) = (mean(offs.iter().copied()), 1.0_f64);
    for _ in 0..TURNS {
        let seen = offs.iter().zip(trials).map(|(off, trial)| {
            if trial.is_cut { truncated_moments(*off, shift, sigma) } else { (*off, 0.0) }
        });
        let seen: Vec<(f64, f64)> = seen.collect();
        shift = mean(seen.iter().map(|(off, _)| *off));
        let variance = mean(seen.iter().map(|(off, unknown)| (off - shift).powi(2) + unknown));
        sigma = variance.sqrt().clamp(0.05, 3.0);
    }
    (shift.clamp(-12.0, 12.0), sigma)
}

fn logit(chance: Chance) -> f64 {
    let inside = chance.get().clamp(1e-6, 1.0 - 1e-6);
    (inside / (1.0 - inside)).ln()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{LengthTails, LogNormal, MeasuredLengths};
    use stint_types::units::SeededRng;

    fn predicted(harder: f64) -> ModelDemand {
        ModelDemand {
            thinking: LogNormal { mu: 5.0 + harder, sigma: 1.1 },
            solution: Tokens(200),
            prompt: Tokens(50),
            done: Chance::new(logistic(0.5 - harder)),
            blind: Chance::new(logistic(-0.2 - harder)),
            bend: 1.0,
            saturation: 4.0,
            spread: 0.2,
            prompt_least: Tokens(50),
            prompt_usual: Tokens::ZERO,
            measured: MeasuredLengths::default(),
            tails: LengthTails::default(),
        }
    }

    /// A model that is better than predicted after a thought, worse without, thinks thrice as long and has another curve.
    fn truth() -> MeasuredCurve {
        MeasuredCurve {
            done_shift: 1.2,
            blind_shift: -0.8,
            spread: 0.03,
            thought_shift: 3.0_f64.ln(),
            sigma: 0.5,
            solution_factor: 0.5,
            bend: 2.0,
            saturation: 1.0,
        }
    }

    fn trials(tasks: u32, budgets: &[u64]) -> Vec<CurveTrial> {
        let mut dice = SeededRng::new(7);
        let mut all = Vec::new();
        for task in 0..tasks {
            let predicted = predicted(f64::from(task % 5) * 0.3 - 0.6);
            let mut real = predicted.clone();
            truth().apply(&mut real);
            let whole =
                Tokens::round((real.thinking.mu + real.thinking.sigma * dice.standard_normal()).exp());
            for budget in budgets.iter().copied().map(Tokens) {
                let is_cut = budget > Tokens::ZERO && whole > budget;
                let chance = match (budget == Tokens::ZERO, is_cut) {
                    (true, _) => real.blind.get(),
                    (false, false) => real.done.get(),
                    (false, true) => real.success_if_cut(budget.as_f64()),
                };
                all.push(CurveTrial {
                    budget,
                    thought: whole.min(budget),
                    is_cut,
                    solution: Tokens(100),
                    right: dice.next_f64() < chance,
                    cost: 0.001,
                    predicted: predicted.clone(),
                });
            }
        }
        all
    }

    #[test]
    fn the_fit_finds_what_made_the_answers() {
        let fitted = fit_measured_curve(&trials(1_500, &[0, 64, 128, 256, 512, 1024, 4096])).unwrap();
        let truth = truth();
        assert!((fitted.done_shift - truth.done_shift).abs() < 0.2, "{fitted:?}");
        assert!((fitted.blind_shift - truth.blind_shift).abs() < 0.2, "{fitted:?}");
        assert!((fitted.thought_shift - truth.thought_shift).abs() < 0.05, "{fitted:?}");
        assert!((fitted.sigma - truth.sigma).abs() < 0.05 && (fitted.solution_factor - 0.5).abs() < 0.01);
        let rise = |curve: &MeasuredCurve, share| {
            let mut demand = predicted(0.0);
            curve.apply(&mut demand);
            demand.rise(share)
        };
        for share in [0.1, 0.3, 0.6, 0.9] {
            assert!((rise(&fitted, share) - rise(&truth, share)).abs() < 0.1, "{share}: {fitted:?}");
        }
        assert!(fitted.is_sound() && fitted.spread < 0.05);
    }

    #[test]
    fn thoughts_that_the_largest_budget_still_cuts_do_not_look_short() {
        let fitted = fit_measured_curve(&trials(1_500, &[0, 512])).unwrap();
        assert!((fitted.thought_shift - truth().thought_shift).abs() < 0.1, "{fitted:?}");
    }

    #[test]
    fn few_answers_keep_the_usual_rise_and_are_unsure() {
        let fitted = fit_measured_curve(&trials(6, &[0, 4096])).unwrap();
        assert!((fitted.bend - 1.0).abs() < 1e-9 && (fitted.saturation - 4.0).abs() < 1e-9);
        assert!(fitted.spread > 0.1, "{fitted:?}");
        assert_eq!(fit_measured_curve(&trials(6, &[0])), None);
    }

    #[test]
    fn an_interval_holds_the_share_and_never_leaves_what_is_possible() {
        let check = |right: u32, of: u32, expected: (f64, f64)| {
            let (low, high) = wilson_interval(right, of);
            assert!((low - expected.0).abs() < 5e-4 && (high - expected.1).abs() < 5e-4, "{low} to {high}");
        };
        check(8, 10, (0.4902, 0.9433));
        check(0, 10, (0.0, 0.2775));
        check(10, 10, (0.7225, 1.0));
        check(0, 0, (0.0, 1.0));
    }
}
