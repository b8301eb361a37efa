//! What the weights of lengths are worth on texts that they were not fitted on.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::folds;
use crate::measure::spearman;

use super::Seen;
use super::fit::{Sample, fit};

/// Random parts, each foretold from the others.
const PARTS: usize = 3;
/// Sets that are like one another are left out together.
pub(super) const ALIKE: [&[&str]; 8] = [
    &["math", "aime"],
    &["livecodebench", "cruxeval"],
    &["gsm8k"],
    &["mmlu-pro", "thoughts qwen3-32b-mmlu-pro", "thoughts gemma4-12b-mmlu-pro"],
    &["thoughts misguided-attention"],
    &["thoughts bullshit-benchmark"],
    &["thoughts epam-airun"],
    &["thoughts lrm-token-economy"],
];
/// How far a model's thoughts are from a usual model's, and one thought of a text from another: standard deviations of the
/// logarithm, over the 57 models and efforts of the measured set.
const MODELS: f64 = 0.7;
const RUNS: f64 = 0.4;

/// What was found.
pub(super) struct LengthReport {
    /// By set: texts, rank correlation with the labels in random parts and with the set left out, and the same of the errors'
    /// standard deviations.
    sets: BTreeMap<String, SetReport>,
    /// The share of pairs of a trivial and a hard text of which the trivial one is foretold the longer thought.
    inverted: f64,
    /// Answers: rank correlation, and how many times too short the median is.
    answers: (f64, f64),
    pub(super) thought_spread: f64,
    pub(super) answer_spread: f64,
}

#[derive(Default)]
struct SetReport {
    texts: usize,
    random: Option<f64>,
    left_out: Option<f64>,
    spread: f64,
}

/// Fits on parts and measures on the rest.
pub(super) fn measure(thoughts: &Seen, answers: &Seen) -> LengthReport {
    let nothing: &[Sample<'_>] = &[];
    let mut foretold = vec![0.0; thoughts.rows.len()];
    let mut answered = vec![0.0; answers.rows.len()];
    let answer_parts = folds::random(answers.rows.len(), PARTS, 3);
    for (fold, answer_fold) in folds::random(thoughts.rows.len(), PARTS, 3).iter().zip(&answer_parts) {
        let prior = fit(&chosen(thoughts, &fold.train), &chosen(answers, &answer_fold.train));
        let lengths = |seen: &Seen, row: usize| seen.inputs[row].lengths(&prior);
        for &row in &fold.test {
            foretold[row] = lengths(thoughts, row).map_or(0.0, |lengths| lengths.thought);
        }
        for &row in &answer_fold.test {
            answered[row] = lengths(answers, row).map_or(0.0, |lengths| lengths.answer);
        }
    }
    let mut beyond = vec![None; thoughts.rows.len()];
    for sets in ALIKE {
        let is_out = |row: usize| sets.contains(&thoughts.rows[row].source.as_str());
        let prior = fit(&thoughts.samples(|row| !is_out(row)), nothing);
        for row in (0..thoughts.rows.len()).filter(|&row| is_out(row)) {
            // Without answers there is nothing said of them: the level of thoughts is all that is looked at.
            beyond[row] = thoughts.inputs[row].lengths(&prior).map(|lengths| lengths.thought);
        }
    }
    let error = |row: usize| foretold[row] - thoughts.rows[row].length;
    let of_models = |row: &usize| thoughts.rows[*row].source.starts_with("thoughts");
    let residual = deviation((0..foretold.len()).filter(of_models).map(error));
    LengthReport {
        sets: by_set(thoughts, &foretold, &beyond),
        inverted: inverted(thoughts, &foretold),
        answers: answer_figures(answers, &answered),
        thought_spread: (residual.powi(2) + MODELS * MODELS + RUNS * RUNS).sqrt(),
        answer_spread: deviation(labelled(answers).map(|row| answered[row] - answers.rows[row].length)),
    }
}

fn chosen<'a>(seen: &'a Seen, rows: &[usize]) -> Vec<Sample<'a>> {
    let mut is_in = vec![false; seen.rows.len()];
    rows.iter().for_each(|&row| is_in[row] = true);
    seen.samples(|row| is_in[row])
}

fn labelled(seen: &Seen) -> impl Iterator<Item = usize> {
    (0..seen.rows.len()).filter(|&row| seen.rows[row].label.is_some())
}

fn deviation(errors: impl Iterator<Item = f64>) -> f64 {
    let errors: Vec<f64> = errors.collect();
    let count = errors.len().max(1) as f64;
    let mean = errors.iter().sum::<f64>() / count;
    (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / count).sqrt()
}

fn by_set(seen: &Seen, foretold: &[f64], beyond: &[Option<f64>]) -> BTreeMap<String, SetReport> {
    let mut sets: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    labelled(seen).for_each(|row| sets.entry(seen.rows[row].source.clone()).or_default().push(row));
    let report = |rows: &Vec<usize>| {
        let labels: Vec<f64> = rows.iter().filter_map(|&row| seen.rows[row].label).collect();
        let inside: Vec<f64> = rows.iter().map(|&row| foretold[row]).collect();
        let outside: Vec<f64> = rows.iter().filter_map(|&row| beyond[row]).collect();
        SetReport {
            texts: rows.len(),
            random: Some(spearman(&inside, &labels)),
            left_out: (outside.len() == labels.len()).then(|| spearman(&outside, &labels)),
            spread: deviation(rows.iter().map(|&row| foretold[row] - seen.rows[row].length)),
        }
    };
    sets.iter().map(|(name, rows)| (name.clone(), report(rows))).collect()
}

/// Trivial are the everyday texts of the shortest kinds; hard the last problems of competitions.
fn inverted(seen: &Seen, foretold: &[f64]) -> f64 {
    let of = |keep: &dyn Fn(usize) -> bool| -> Vec<f64> {
        (0..foretold.len()).filter(|&row| keep(row)).map(|row| foretold[row]).collect()
    };
    let trivial =
        of(&|row| seen.rows[row].source == "everyday own-synthetic" && seen.rows[row].length < 5.05);
    let hard = of(&|row| seen.rows[row].source == "aime" && seen.rows[row].length > 8.9);
    let pairs = trivial.iter().flat_map(|easy| hard.iter().map(move |hard| easy >= hard));
    let (wrong, all) =
        pairs.fold((0.0, 0.0), |(wrong, all), is| (wrong + f64::from(u8::from(is)), all + 1.0));
    wrong / f64::max(all, 1.0)
}

fn answer_figures(seen: &Seen, answered: &[f64]) -> (f64, f64) {
    let rows: Vec<usize> = labelled(seen).collect();
    let truth: Vec<f64> = rows.iter().map(|&row| seen.rows[row].length).collect();
    let told: Vec<f64> = rows.iter().map(|&row| answered[row]).collect();
    let mut ratios: Vec<f64> = truth.iter().zip(&told).map(|(truth, told)| truth - told).collect();
    ratios.sort_by(f64::total_cmp);
    (spearman(&told, &truth), ratios.get(ratios.len() / 2).map_or(1.0, |ratio| ratio.exp()))
}

/// The report as it is written.
pub(super) fn written(report: &LengthReport, thoughts: &Seen, answers: &Seen, size: usize) -> String {
    let mut text = format!(
        "# The shipped lengths\n\n`lengths.bin` is written by `make prior DATA=folder`, with this page: what a text's counts \
         and words say of the thought and the answer that it gets. The steps stand in `decide/src/lengths`. Nothing of the \
         data can be read back from the weights.\n\n- {} texts for thoughts, {} for answers; {size} bytes.\n- How long a \
         set's thoughts usually are is a judgement (`decide/src/lengths/data.rs`), and so is that of everyday texts; measured \
         are the sets `thoughts …`, and within each set which of its texts are harder.\n- Spread of a thought's length about \
         what is foretold, model and chance included: {:.2}; of an answer's: {:.2} (of the logarithms).\n- Pairs of a trivial \
         everyday text and one of the last problems of a competition, of which the trivial one is foretold the longer thought: \
         {:.1} %.\n- Answers, in random parts left out: rank correlation {:.2}; the median is {:.2} times what was foretold.\n\n\
         Rank correlation of what is foretold with how hard a text is (with its thought's length in the sets `thoughts …`), on \
         texts left out:\n\n| set | texts | random thirds left out | the set and what is like it left out | spread |\n\
         |---|---|---|---|---|\n",
        thoughts.rows.len(),
        answers.rows.len(),
        report.thought_spread,
        report.answer_spread,
        100.0 * report.inverted,
        report.answers.0,
        report.answers.1,
    );
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    for (name, set) in &report.sets {
        let (random, left_out) = (shown(set.random), shown(set.left_out));
        let _ = writeln!(text, "| {name} | {} | {random} | {left_out} | {:.2} |", set.texts, set.spread);
    }
    text
}
