//! Fits what ships of the lengths of thoughts and answers, and says what it is worth on texts that were left out.

mod data;
mod effects;
mod fit;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use stint_decide::estimate::{LengthInput, encode_lengths};
use stint_types::catalog::LengthPrior;

use crate::data::DataError;
use crate::folds;

pub use data::{ThoughtRun, runs};

use data::LengthRow;
use fit::Sample;

/// Rows with what the fit sees of them.
struct Seen {
    rows: Vec<LengthRow>,
    inputs: Vec<LengthInput>,
}

impl Seen {
    fn of(rows: Vec<LengthRow>) -> Seen {
        let inputs = rows.iter().map(|row| LengthInput::of(&row.text)).collect();
        Seen { rows, inputs }
    }

    /// Those rows that are kept.
    fn samples(&self, keep: impl Fn(usize) -> bool) -> Vec<Sample<'_>> {
        let sample = |at: usize| {
            let LengthRow { length, weight, .. } = self.rows[at];
            Sample { input: &self.inputs[at], length, weight }
        };
        (0..self.rows.len()).filter(|&at| keep(at)).map(sample).collect()
    }
}

/// A prior that was fitted without some texts, which it may be measured on.
pub struct LeftOut {
    /// What is said of lengths without them.
    pub prior: Arc<LengthPrior>,
    /// Themselves, with the set of each and how hard it is among those of its set.
    pub texts: BTreeMap<String, (String, f64)>,
}

/// For each set of measured thoughts, and for MMLU-Pro, a prior that saw neither it nor what is like it; or, by thirds, three
/// that each saw two thirds of all texts. Spreads are those that ship.
///
/// # Errors
/// When the data cannot be read.
pub fn left_out(folder: &Path, by: LeftOutBy, shipped: &LengthPrior) -> Result<Vec<LeftOut>, DataError> {
    let thoughts = Seen::of(data::thoughts(folder)?);
    let source = |row: usize| thoughts.rows[row].source.as_str();
    let parts: Vec<Vec<usize>> = match by {
        LeftOutBy::Set | LeftOutBy::Problems => report::ALIKE
            .iter()
            .filter(|sets| sets.iter().any(|set| set.starts_with("thoughts")) == (by == LeftOutBy::Set))
            .map(|sets| (0..thoughts.rows.len()).filter(|&row| sets.contains(&source(row))).collect())
            .collect(),
        LeftOutBy::Third => {
            folds::random(thoughts.rows.len(), 3, 3).into_iter().map(|fold| fold.test).collect()
        }
    };
    let one = |rows: Vec<usize>| {
        let out: BTreeSet<usize> = rows.into_iter().collect();
        let fitted = fit::fit(&thoughts.samples(|row| !out.contains(&row)), &[]);
        let LengthPrior { thought_spread, answer_spread, .. } = *shipped;
        LeftOut {
            prior: Arc::new(LengthPrior { thought_spread, answer_spread, ..fitted }),
            texts: out
                .iter()
                .map(|&row| {
                    let label = thoughts.rows[row].label.unwrap_or_default();
                    (thoughts.rows[row].text.clone(), (source(row).to_owned(), label))
                })
                .collect(),
        }
    };
    Ok(parts.into_iter().map(one).collect())
}

/// How texts are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutBy {
    /// Whole sets of measured thoughts, with what is like them.
    Set,
    /// Whole sets of problems whose difficulty is known, likewise.
    Problems,
    /// A third of all texts, drawn at random.
    Third,
}

/// The file's bytes, and the report.
///
/// # Errors
/// When the data cannot be read.
pub fn make(folder: &Path) -> Result<(Vec<u8>, String), DataError> {
    let (thoughts, answers) = (Seen::of(data::thoughts(folder)?), Seen::of(data::answers(folder)?));
    let measured = report::measure(&thoughts, &answers);
    let prior = LengthPrior {
        thought_spread: measured.thought_spread,
        answer_spread: measured.answer_spread,
        ..fit::fit(&thoughts.samples(|_| true), &answers.samples(|_| true))
    };
    let bytes = encode_lengths(&prior);
    let text = report::written(&measured, &thoughts, &answers, bytes.len());
    print!("{text}");
    Ok((bytes, text))
}
