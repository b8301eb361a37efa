//! Fits a model's coefficients to its own traces.
//!
//! It uses the same features as at run time, so that the two cannot drift apart. `examples/calibrate/` runs it and
//! writes `calibration.toml`.

use std::collections::{BTreeMap, BTreeSet};

use stint_types::catalog::{Features, LogNormal, ModelCalibration, TaskClass, TrainingDomain};
use stint_types::units::Tokens;

use super::cut_curve::{CutAnswer, likeliest_curve};
use super::lexeme::{LexemeVisitor, Lexer, WordLexeme};
use super::solve::{WeightedObservation, least_squares, logistic};
use super::text::{QuestionText, TextAnalysis};
use super::{classify, demand, features, mean};

/// A word counts as known when this many questions had it.
const WORD_SEEN: usize = 3;

/// How an answer turned out after a thought cut at a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetedAnswer {
    /// The thinking budget.
    pub budget: Tokens,
    /// Whether the answer was right.
    pub right: bool,
}

/// One question, and what the model did with it.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationTrace {
    /// The text.
    pub question: String,
    /// How long it thought.
    pub thinking: Tokens,
    /// True if it was cut there: it would have thought at least so long.
    pub is_cut: bool,
    /// How long it answered.
    pub solution: Tokens,
    /// Whether the answer after the whole thought was right.
    pub right: bool,
    /// The same question with budgets; 0 among them.
    pub cuts: Vec<BudgetedAnswer>,
}

impl CalibrationTrace {
    /// ln L; a thought that closed at once counts as one token.
    pub fn log_length(&self) -> f64 {
        self.thinking.as_f64().max(1.0).ln()
    }

    /// The cuts that really cut.
    pub fn real_cuts(&self) -> impl Iterator<Item = &BudgetedAnswer> {
        self.cuts.iter().filter(|cut| cut.budget > Tokens::ZERO && cut.budget < self.thinking)
    }

    fn blind(&self) -> Option<bool> {
        self.cuts.iter().find(|cut| cut.budget == Tokens::ZERO).map(|cut| cut.right)
    }
}

/// Fits all coefficients: least squares for ln L (by expectation where a thought was cut), logistic regression for
/// the chances at both ends, and the curve between them by likelihood over a grid. It takes some hundreds of traces.
pub fn fit(traces: &[CalibrationTrace]) -> ModelCalibration {
    let rows: Vec<Features> = traces.iter().map(|trace| features(&trace.question)).collect();
    let pairs = || rows.iter().copied().zip(traces);
    let LengthFit { thinking, variance, explained } = lengths(&rows, traces);
    let done: Vec<_> =
        pairs().filter(|(_, trace)| !trace.is_cut).map(|(row, trace)| (row, trace.right)).collect();
    let blind: Vec<_> = pairs().filter_map(|(row, trace)| Some((row, trace.blind()?))).collect();
    let mut calibration = ModelCalibration {
        sigma: variance.sqrt().max(0.01),
        bend: 1.0,
        saturation: 1.0,
        solution: mean(traces.iter().map(|trace| trace.solution.as_f64())),
        confidence: explained.clamp(0.0, 1.0),
        thinking,
        done: logistic(&done),
        blind: logistic(&blind),
        domain: domain(traces),
    };
    (calibration.bend, calibration.saturation) = curve(&calibration, &rows, traces);
    calibration
}

/// How lengths go with features.
struct LengthFit {
    thinking: Features,
    /// Of ln L about its mean.
    variance: f64,
    /// The share of the variance of ln L that the features explain.
    explained: f64,
}

/// Least squares; what was cut takes its expectation under the last fit, and the variance of that, in turns
/// (Schmee and Hahn, *A simple method for regression analysis with censored data*, 1979).
fn lengths(rows: &[Features], traces: &[CalibrationTrace]) -> LengthFit {
    const TURNS: usize = 20;
    let mut logs: Vec<f64> = traces.iter().map(CalibrationTrace::log_length).collect();
    let mut unknown = vec![0.0; traces.len()];
    let turns = if traces.iter().any(|trace| trace.is_cut) { TURNS } else { 1 };
    let mut found = LengthFit { thinking: Features::default(), variance: 1.0, explained: 0.0 };
    for _ in 0..turns {
        let pairs = rows.iter().zip(&logs);
        let thinking = least_squares(pairs.map(|(&features, &target)| WeightedObservation {
            features,
            target,
            weight: 1.0,
        }));
        let average = mean(logs.iter().copied());
        let rest = |centre: &dyn Fn(&Features) -> f64| {
            let seen = rows.iter().zip(&logs).zip(&unknown);
            mean(seen.map(|((row, log), unknown)| (log - centre(row)).powi(2) + unknown))
        };
        let variance = rest(&|row| row.dot(&thinking));
        let explained = 1.0 - variance / rest(&|_| average).max(f64::MIN_POSITIVE);
        found = LengthFit { thinking, variance, explained };
        for (at, trace) in traces.iter().enumerate().filter(|(_, trace)| trace.is_cut) {
            let centre = rows[at].dot(&found.thinking);
            (logs[at], unknown[at]) =
                truncated_moments(trace.log_length(), centre, found.variance.sqrt().max(0.01));
        }
    }
    found
}

/// The mean and the variance of a normal number that is known to lie above a bound.
pub(super) fn truncated_moments(bound: f64, mean: f64, sigma: f64) -> (f64, f64) {
    let above = LogNormal { mu: mean, sigma };
    // The hazard of the logarithm is the length's own times the length.
    let hazard = above.hazard(bound.exp()) * bound.exp() * sigma;
    let z = (bound - mean) / sigma;
    (mean + sigma * hazard, sigma * sigma * (1.0 + z * hazard - hazard * hazard).clamp(0.0, 1.0))
}

/// The bend and the saturation under which the cut thoughts' answers are likeliest.
fn curve(calibration: &ModelCalibration, rows: &[Features], traces: &[CalibrationTrace]) -> (f64, f64) {
    let answer = |row: &Features, cut: &BudgetedAnswer| CutAnswer {
        demand: demand(calibration, row),
        thought: cut.budget,
        right: cut.right,
    };
    let pairs = rows.iter().zip(traces);
    let cuts = pairs.flat_map(|(row, trace)| trace.real_cuts().map(move |cut| answer(row, cut)));
    likeliest_curve(&mut cuts.collect::<Vec<_>>())
}

fn domain(traces: &[CalibrationTrace]) -> TrainingDomain {
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    let mut tasks: BTreeMap<TaskClass, usize> = BTreeMap::new();
    for trace in traces {
        let text = QuestionText::question(&trace.question);
        let reading = TextAnalysis::of(&text);
        *tasks.entry(classify::class_of(&reading)).or_default() += 1;
        let (mut lexemes, mut distinct) = (Lexer::of(reading.text), WordCollector::default());
        while lexemes.visit_next(&mut distinct) {}
        distinct.0.into_iter().for_each(|word| *words.entry(word).or_default() += 1);
    }
    TrainingDomain {
        tasks: frequent(tasks, traces.len() / 100 + 1).collect(),
        words: frequent(words, WORD_SEEN).collect(),
    }
}

/// The words of a text, in lower case.
#[derive(Default)]
struct WordCollector(BTreeSet<String>);

impl<'t> LexemeVisitor<'t> for WordCollector {
    fn word(&mut self, word: &WordLexeme<'t>) {
        self.0.insert(String::from_utf8_lossy(word.bytes).to_ascii_lowercase());
    }
}

fn frequent<K>(counts: BTreeMap<K, usize>, least: usize) -> impl Iterator<Item = K> {
    counts.into_iter().filter(move |(_, count)| *count >= least).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{Feature, ModelDemand};

    /// Noise that is the same on every machine: the fractional parts of multiples of the golden ratio, two
    /// of them turned into a standard normal (Box and Muller, 1958).
    fn uniform(i: u32, stream: f64) -> f64 {
        (f64::from(i) * 0.618_033_988_749_895 + stream * 0.754_877_666).fract().max(1e-9)
    }

    fn gauss(i: u32) -> f64 {
        let spread = (f64::from(i) * 0.569_840_290_998).fract().max(1e-9);
        (-2.0 * uniform(i, 0.0).ln()).sqrt() * (std::f64::consts::TAU * spread).cos()
    }

    /// A made-up reasoner: ln L = 1.5 + 1.1·ln(1 + steps) ± 0.2, nearly always right when done, right with a
    /// chance of r² when cut.
    fn made_up(i: u32) -> CalibrationTrace {
        let terms = 1 + i % 6;
        let question = (0..terms).fold(format!("What is {}", 11 + i % 80), |q, k| {
            format!("{q}{}{}", ["+", "*", "-"][((i / 7 + k) % 3) as usize], 2 + (i * 13 + k * 7) % 90)
        });
        let mu = 1.5 + 1.1 * features(&question)[Feature::Steps];
        let thinking = Tokens::round((mu + 0.2 * gauss(i)).exp());
        let cuts = [0, 8, 16, 32, 64, 128].map(Tokens).map(|budget| {
            let share = (budget.as_f64() / thinking.as_f64()).min(1.0);
            BudgetedAnswer { budget, right: uniform(i, budget.as_f64()) < share.powi(2) * 0.97 }
        });
        CalibrationTrace {
            question,
            thinking,
            is_cut: false,
            solution: Tokens(5),
            right: uniform(i, 999.0) < 0.97,
            cuts: cuts.into(),
        }
    }

    #[test]
    fn a_fit_finds_the_coefficients_that_made_the_traces() {
        let traces: Vec<CalibrationTrace> = (0..1500).map(made_up).collect();
        let calibration = fit(&traces);
        assert!((calibration.sigma - 0.2).abs() < 0.03, "sigma {}", calibration.sigma);
        assert!((calibration.thinking[Feature::Steps] - 1.1).abs() < 0.15, "{:?}", calibration.thinking);
        assert!((1.25..=3.0).contains(&calibration.bend), "bend {}", calibration.bend);
        let demand = demand(&calibration, &features(&traces[5].question));
        assert!((demand.done.get() - 0.97).abs() < 0.03, "done {}", demand.done);
        assert!(demand.blind.get() < 0.05, "blind {}", demand.blind);
        assert_eq!(calibration.domain.tasks, [TaskClass::Math].into());
        assert!(calibration.domain.words.contains("what"));
    }

    #[test]
    fn a_fit_tells_a_success_that_rises_early_from_one_that_rises_late() {
        let early = |i: u32| {
            let trace = made_up(i);
            let right = |cut: &BudgetedAnswer| {
                let share = (cut.budget.as_f64() / trace.thinking.as_f64()).min(1.0);
                uniform(i, cut.budget.as_f64()) < (1.0 - (1.0 - share).powi(4)) * 0.97
            };
            let cuts = trace.cuts.iter().map(|cut| BudgetedAnswer { right: right(cut), ..*cut }).collect();
            CalibrationTrace { cuts, ..trace }
        };
        let calibration = fit(&(0..1500).map(early).collect::<Vec<_>>());
        let kept = ModelDemand {
            thinking: LogNormal { mu: 5.0, sigma: 0.2 },
            ..demand(&calibration, &Features::default())
        };
        assert!((kept.rise(0.2) - 0.59).abs() < 0.1, "{calibration:?}");
        assert!(kept.rise(0.001) < 0.02, "{calibration:?}");
    }

    #[test]
    fn thoughts_that_were_cut_do_not_make_the_others_look_shorter() {
        let whole: Vec<CalibrationTrace> = (0..1500).map(made_up).collect();
        let cut = |trace: &CalibrationTrace| {
            let least = trace.thinking.min(Tokens(40));
            CalibrationTrace { is_cut: trace.thinking > least, thinking: least, ..trace.clone() }
        };
        let some: Vec<CalibrationTrace> = whole.iter().map(cut).collect();
        assert!(some.iter().filter(|trace| trace.is_cut).count() > 300);
        let naive: Vec<CalibrationTrace> =
            some.iter().map(|trace| CalibrationTrace { is_cut: false, ..trace.clone() }).collect();
        let usual = |traces: &[CalibrationTrace]| {
            let thinking = fit(traces).thinking;
            mean(whole.iter().map(|trace| features(&trace.question).dot(&thinking)))
        };
        let (told, truth, misled) = (usual(&some), usual(&whole), usual(&naive));
        assert!((told - truth).abs() < 0.06, "{told} against {truth}");
        assert!(misled < truth - 0.1, "{misled} against {truth}");
    }

    #[test]
    fn half_of_new_thoughts_end_before_the_predicted_median() {
        let calibration = fit(&(0..1500).map(made_up).collect::<Vec<_>>());
        let shorter = (5000..6000)
            .map(made_up)
            .filter(|trace| trace.log_length() < features(&trace.question).dot(&calibration.thinking));
        assert!((450..550).contains(&shorter.count()));
    }
}
