//! Fits the shipped prior on all the data, and tells how it was made.

use std::fmt::Write;
use std::path::Path;

use crate::data::{self, DataError, Row};
use crate::measure::mean;
use crate::train::{self, Fitted, Lessons};
use stint_decide::estimate::encode;
use stint_decide::estimate::prior::prior_input;
use stint_types::catalog::Prior;

/// The file's bytes, and the report.
///
/// # Errors
/// When the data cannot be read.
pub fn make(data: &Path) -> Result<(Vec<u8>, String), DataError> {
    let rows = data::mmlu_pro(data)?;
    let sights: Vec<_> = rows.iter().map(|row| prior_input(&row.text())).collect();
    let all: Vec<usize> = (0..rows.len()).collect();
    let bare: Vec<_> = rows.iter().map(train::bare).collect();
    let fitted = train::fit(Lessons { rows: &rows, sights: &sights, bare: &bare }, &all);
    let bytes = encode(&fitted.prior);
    let report = report(&rows, &fitted, bytes.len());
    print!("{report}");
    Ok((bytes, report))
}

fn report(rows: &[Row], fitted: &Fitted, size: usize) -> String {
    let Fitted { prior, penalty, explained } = fitted;
    let places = prior.grams.iter().filter(|gram| gram.rarity > 0).count();
    let mut text = format!(
        "# The shipped prior\n\n`prior.bin` is written by `make prior DATA=folder`, with this page. It has {} models' \
         responses to the traits of a question, and the weights by which the question's text tells those traits. The \
         steps stand in `decide/src/train/mod.rs`; what it is worth, against simple rules and on questions it was \
         not fitted on, in `load-tests/results/routing.md`.\n\n- Data: MMLU-Pro, {} questions with the published \
         answers of {} models (TIGER-AI-Lab, Apache-2.0). The data is not in this repository; nothing of it can be \
         read back from the weights.\n- {places} words, signs and pairs of neighbours in {} places, one byte for each \
         weight; {size} bytes.\n- The penalty on words, chosen among {:?} by rows that were left out: {penalty}.\n- \
         Lengths are log-normal. On a fifth of the rows left out, with the mean by ridge regression on surface features \
         and both families fitted by likelihood, the log-normal was likelier than the gamma for 22 of the 29 models; \
         where the gamma was, by at most 0.07 nats a row, the other way by up to 0.43. \
         For the embedded model `cargo run --example calibrate` \
         prints both.\n\n",
        prior.models.len(),
        rows.len(),
        prior.models.len(),
        prior.grams.len(),
        train::PENALTIES,
    );
    text.push_str("| trait | share of its variance foretold, random parts left out | whole categories left out |\n|---|---|---|\n");
    for (at, (random, category)) in explained.iter().enumerate() {
        let name =
            if at + 1 == explained.len() { "length".to_owned() } else { format!("component {}", at + 1) };
        let _ = writeln!(text, "| {name} | {random:.3} | {category:.3} |");
    }
    text.push_str(&models(rows, prior));
    text
}

/// What a model that is known by its ability alone would be told, beside what is known of it.
fn models(rows: &[Row], prior: &Prior) -> String {
    let mut text = "\n| model | accuracy | level, by the model's own answers | level, by its ability alone | usual tokens |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for (name, loadings) in &prior.models {
        let right: Vec<f64> =
            rows.iter().filter_map(|row| row.correct.get(&**name).copied()).map(f64::from).collect();
        let accuracy = mean(&right);
        let guessed = prior.curve.at((accuracy / (1.0 - accuracy)).ln()).level;
        let (level, usual) = (loadings.level, loadings.length.exp());
        let _ = writeln!(text, "| {name} | {accuracy:.3} | {level:.2} | {guessed:.2} | {usual:.0} |");
    }
    text
}
