//! How long a model thinks that nobody has seen, before and after some of its thoughts: through the product's own estimate and store.
//!
//! What is said of a text comes from weights that were fitted without it. A model's texts are halved: thoughts on one half are
//! learned from, and those on the other are measured, so that no text is measured that anything was learned of: in several ways.

mod levels;
mod report;
mod trial;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use crate::data;
use crate::lengths::{self, LeftOut, LeftOutBy, ThoughtRun};
use stint_decide::estimate::{self, estimate};
use stint_types::catalog::{Calibration, Demand, LengthPrior};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::{SeededRng, Tokens};

use trial::Subject;

/// English has about four characters in a token.
const CHARACTERS: f64 = 4.0;
/// Fewer texts are not halved.
const TEXTS_MIN: usize = 30;
/// So many of MMLU-Pro's questions are looked at for each model.
const QUESTIONS: usize = 1_600;
/// A model's name in what is asked of the estimate.
const ANY: &str = "any";

/// Measures everything.
///
/// # Errors
/// When the data, or the weights that ship, cannot be read.
pub fn report(folder: &Path) -> Result<String, Box<dyn Error>> {
    let shipped = estimate::shipped()?;
    let runs = lengths::runs(folder)?;
    let sets = lengths::left_out(folder, LeftOutBy::Set, shipped.priors.lengths())?;
    let thirds = lengths::left_out(folder, LeftOutBy::Third, shipped.priors.lengths())?;
    let mut text = include_str!("preface.md").trim_end().to_owned();
    let worlds = [
        (
            "Thoughts of reasoning models, their sets and what is like them left out",
            subjects(&runs, &sets, &shipped),
        ),
        ("Thoughts of reasoning models, a third of all texts left out", subjects(&runs, &thirds, &shipped)),
        (
            "Answers worked out by models that do not think, MMLU-Pro and what is like it left out",
            worked_out(folder, &sets, &shipped)?,
        ),
    ];
    for (name, subjects) in worlds {
        text.push_str(&report::world(name, &subjects));
    }
    let problems = lengths::left_out(folder, LeftOutBy::Problems, shipped.priors.lengths())?;
    text.push_str(&levels::tables(&problems, &thirds, &shipped));
    Ok(text)
}

/// Demands by text, each from a prior that did not see it.
fn foretell<'a>(
    texts: impl Iterator<Item = &'a str>,
    out: &[LeftOut],
    shipped: &Calibration,
) -> BTreeMap<&'a str, Arc<Demand>> {
    let calibration = |out: &LeftOut| {
        let priors = Arc::new(shipped.priors.with_lengths(LengthPrior::clone(&out.prior)));
        Calibration { priors, ..shipped.clone() }
    };
    let calibrations: Vec<Calibration> = out.iter().map(calibration).collect();
    let mut all = BTreeMap::new();
    for text in texts {
        let Some(at) = out.iter().position(|out| out.texts.contains_key(text)) else { continue };
        let prompts = [(Arc::from(ANY), Tokens::round(text.len() as f64 / CHARACTERS))].into();
        let request = Request::new("auto", vec![Message::text(Role::User, text)]);
        all.entry(text).or_insert_with(|| Arc::new(estimate(&request, &prompts, &calibrations[at])));
    }
    all
}

/// Every model with enough texts that were left out.
fn subjects(runs: &[ThoughtRun], out: &[LeftOut], shipped: &Calibration) -> Vec<Subject> {
    let demands = foretell(runs.iter().map(|run| run.text.as_str()), out, shipped);
    let mut models: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| demands.contains_key(run.text.as_str())) {
        models.entry(&run.model).or_default().entry(&run.text).or_default().push(run.tokens);
    }
    let enough = models.into_iter().filter(|(_, texts)| texts.len() >= TEXTS_MIN);
    enough
        .map(|(model, texts)| {
            let texts = texts.into_iter().map(|(text, lengths)| (demands[text].clone(), lengths));
            Subject::of(model, &texts.collect::<Vec<_>>())
        })
        .collect()
}

/// MMLU-Pro's models, the length of their reasoning and answer together for a thought.
fn worked_out(folder: &Path, out: &[LeftOut], shipped: &Calibration) -> Result<Vec<Subject>, Box<dyn Error>> {
    let mut rows = data::mmlu_pro(folder)?;
    SeededRng::new(501).shuffle(&mut rows);
    rows.truncate(QUESTIONS);
    let texts: Vec<String> = rows.iter().map(data::Row::text).collect();
    let demands = foretell(texts.iter().map(String::as_str), out, shipped);
    let names: Vec<&String> = rows.first().map(|row| row.out_chars.keys().collect()).unwrap_or_default();
    let one = |name: &&String| {
        let length = |(row, text): (&data::Row, &String)| {
            let characters = row.out_chars.get(*name).copied().filter(|&count| count > 0.0)?;
            Some((demands.get(text.as_str())?.clone(), vec![(characters / CHARACTERS).max(1.0)]))
        };
        Subject::of(name, &rows.iter().zip(&texts).filter_map(length).collect::<Vec<_>>())
    };
    Ok(names.iter().map(one).collect())
}
