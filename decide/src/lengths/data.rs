//! Texts with what is known of their thoughts and answers.
//!
//! Only one set has measured lengths of thoughts, of 317 texts. The others say how hard a text is among those of its set: each
//! set is put on the scale of lengths by two judgements, the usual length of its texts' thoughts and how far their difficulty
//! moves it, which stand in [`scale`]. Everyday texts have no label at all: their kinds have usual lengths.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::data::{self, DataError};

use super::effects::{Measured, text_effects};

/// One text.
#[derive(Debug, Clone)]
pub(super) struct LengthRow {
    /// What is asked.
    pub(super) text: String,
    /// The set it is of.
    pub(super) source: String,
    /// How hard it is among those of its set, where that is known: the higher the harder.
    pub(super) label: Option<f64>,
    /// The logarithm of a usual thought's length.
    pub(super) length: f64,
    /// What it counts in the fit.
    pub(super) weight: f64,
}

#[derive(Deserialize)]
struct Difficulty {
    source: String,
    text: Option<String>,
    fail: Option<f64>,
    level: Option<serde_json::Value>,
    problem_number: Option<f64>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Thoughts {
    source: String,
    text: Option<String>,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    m: String,
    effort: Option<String>,
    think: Option<f64>,
}

#[derive(Deserialize)]
struct Everyday {
    source: String,
    kind: String,
    text: String,
}

#[derive(Deserialize)]
struct Answers {
    source: String,
    text: Option<String>,
    out: BTreeMap<String, Option<f64>>,
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Vec<T>, DataError> {
    data::rows(&folder.join(name))
}

/// A set's usual length of thoughts, and what a deviation of difficulty adds to it: judgements, from what current models report
/// on such sets. `None` for a set that is not used.
fn scale(source: &str) -> Option<(&'static str, f64, f64)> {
    match source {
        "math-train" => Some(("math", 7.4, 0.65)),
        "aime-1983-2023" => Some(("aime", 8.6, 0.3)),
        "routerdc-gsm8k-train" => Some(("gsm8k", 6.3, 0.35)),
        "cruxeval-input" => Some(("cruxeval", 6.5, 0.35)),
        "cruxeval-output" => Some(("cruxeval", 6.5, 0.35)),
        source if source.starts_with("livecodebench") => Some(("livecodebench", 8.2, 0.75)),
        source if source.starts_with("shaberi") => Some(("shaberi", 6.6, 0.4)),
        _ => None,
    }
}

/// How long the thoughts on everyday texts of a kind are: a judgement.
fn everyday_length(kind: &str) -> f64 {
    match kind {
        "greeting" => 3.8,
        "smalltalk" => 4.6,
        "tool-result" => 4.9,
        "fact" | "translate" | "json" => 5.0,
        "zh:rewrite" | "zh:extract" => 5.1,
        "rewrite" => 5.3,
        "zh:open qa" | "zh:classification" | "zh:summarization" => 5.4,
        "router-test" => 5.5,
        "email" | "zh:closed\u{a0}qa" => 5.6,
        "zh:brainstorming" | "instruction" => 5.7,
        "ja:generic" => 5.8,
        "zh:generation" | "ja:roleplay" => 5.9,
        "ja:counterfactual" => 6.1,
        "role-prompt" | "zh:math" | "long-document" => 6.2,
        "code" | "zh:code" | "agent-customer-service" | "system-prompt" => 6.3,
        "sql" | "ja:math" => 6.4,
        "code-review" | "ja:coding" | "instruction-following" => 6.6,
        "ja:fermi" => 6.9,
        "hard" => 8.3,
        _ => 6.0,
    }
}

/// The same of their answers; nothing for kinds of which nothing is judged.
fn everyday_answer(kind: &str) -> Option<f64> {
    match kind {
        "greeting" => Some(2.9),
        "smalltalk" => Some(4.2),
        "fact" | "translate" => Some(3.7),
        "rewrite" | "json" => Some(4.1),
        "tool-result" => Some(4.4),
        "sql" => Some(5.0),
        "email" => Some(5.3),
        "code" => Some(5.5),
        "code-review" => Some(6.0),
        _ => None,
    }
}

/// All texts with their thoughts' lengths.
///
/// # Errors
/// When a file is not there or damaged.
pub(super) fn thoughts(folder: &Path) -> Result<Vec<LengthRow>, DataError> {
    let mut rows = labelled(&read(folder, "difficulty.jsonl.gz")?);
    rows.extend(choices(folder)?);
    rows.extend(measured(&read(folder, "thinking-lengths.jsonl.gz")?));
    let everyday: Vec<Everyday> = read(folder, "everyday-prompts.jsonl.gz")?;
    rows.extend(everyday.into_iter().map(|row| LengthRow {
        length: everyday_length(&row.kind),
        source: format!("everyday {}", row.source),
        label: None,
        text: row.text,
        weight: 1.0,
    }));
    rows.extend(judged());
    balance(&mut rows);
    Ok(rows)
}

/// Short texts, hard and easy, in several languages, with the usual length of their thoughts: judgements, and texts, of our own.
/// No set has them: those with labels are long, and those of everyday texts say nothing of what is hard.
fn judged() -> impl Iterator<Item = LengthRow> {
    /// They are few.
    const WEIGHT: f64 = 4.0;
    include_str!("judged.tsv").lines().filter_map(|line| {
        let (length, text) = line.split_once('\t')?;
        let length = length.parse().ok()?;
        let source = "judged".to_owned();
        Some(LengthRow { text: text.to_owned(), source, label: Some(length), length, weight: WEIGHT })
    })
}

/// No set counts more than so many texts.
fn balance(rows: &mut [LengthRow]) {
    const MOST: f64 = 5000.0;
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.source.clone()).or_default() += 1.0);
    for row in rows {
        row.weight *= (MOST / counts[&row.source]).min(1.0);
    }
}

fn labelled(all: &[Difficulty]) -> Vec<LengthRow> {
    let mut sets: BTreeMap<&str, Vec<(&Difficulty, f64)>> = BTreeMap::new();
    for row in all {
        if let Some(label) = label(row) {
            sets.entry(&row.source).or_default().push((row, label));
        }
    }
    let mut rows = Vec::new();
    for (source, set) in sets {
        let Some((name, usual, per_deviation)) = scale(source) else { continue };
        let labels: Vec<f64> = set.iter().map(|(_, label)| *label).collect();
        let standard = standardized(&labels);
        // Whole sets of programs are few, and so is grade-school arithmetic.
        let weight = if ["gsm8k", "cruxeval", "livecodebench"].contains(&name) { 2.0 } else { 1.0 };
        rows.extend(set.iter().zip(standard).filter_map(|((row, label), deviation)| {
            Some(LengthRow {
                text: row.text.clone()?,
                source: name.to_owned(),
                label: Some(*label),
                length: usual + per_deviation * deviation,
                weight,
            })
        }));
    }
    rows
}

/// How hard a text is within its set: a level where there is one, else how often it is failed.
fn label(row: &Difficulty) -> Option<f64> {
    let level = row.level.as_ref().and_then(|level| match level.as_str() {
        Some("easy") => Some(0.0),
        Some("medium") => Some(1.0),
        Some("hard") => Some(2.0),
        Some(other) => other.parse().ok(),
        None => level.as_f64(),
    });
    if row.source.starts_with("shaberi") {
        let mean = row.rest.iter().find(|(name, _)| name.starts_with("mean_"))?;
        return mean.1.as_f64().map(|score| -score);
    }
    match row.source.as_str() {
        "math-train" => level.filter(|&level| level >= 1.0),
        "aime-1983-2023" => row.problem_number,
        source if source.starts_with("livecodebench") => Some(level? + 0.5 * row.fail.unwrap_or(0.0)),
        _ => row.fail,
    }
}

/// MMLU-Pro's questions with their options: the more of 29 models fail, the harder.
fn choices(folder: &Path) -> Result<Vec<LengthRow>, DataError> {
    let rows = data::mmlu_pro(folder)?;
    let hardness: Vec<f64> = rows.iter().map(|row| 0.05 + 0.9 * row.difficulty()).collect();
    let logits: Vec<f64> = hardness.iter().map(|share| (share / (1.0 - share)).ln()).collect();
    let row = |((row, deviation), hardness): ((&data::Row, f64), &f64)| LengthRow {
        text: row.text(),
        source: "mmlu-pro".to_owned(),
        label: Some(*hardness),
        length: 7.0 + 0.55 * deviation,
        weight: 1.0,
    };
    Ok(rows.iter().zip(standardized(&logits)).zip(&hardness).map(row).collect())
}

/// A thought that a model had on a text.
#[derive(Debug, Clone)]
pub struct ThoughtRun {
    /// The set of the text, as texts with left out priors have it.
    pub source: String,
    /// What was asked.
    pub text: String,
    /// Who thought, and how hard it was told to.
    pub model: String,
    /// How long it thought, in tokens.
    pub tokens: f64,
}

/// Every measured thought on a text that is stored.
///
/// # Errors
/// When the file is not there or damaged.
pub fn runs(folder: &Path) -> Result<Vec<ThoughtRun>, DataError> {
    let mut all = Vec::new();
    for row in read::<Thoughts>(folder, "thinking-lengths.jsonl.gz")? {
        let Some(text) = &row.text else { continue };
        for run in row.runs.iter().filter(|run| !is_summarized(&row, run)) {
            if let Some(tokens) = run.think.filter(|&tokens| tokens > 0.0) {
                let model = match &run.effort {
                    Some(effort) => format!("{} ({effort})", run.m),
                    None => run.m.clone(),
                };
                all.push(ThoughtRun {
                    source: format!("thoughts {}", row.source),
                    text: text.clone(),
                    model,
                    tokens,
                });
            }
        }
    }
    Ok(all)
}

/// True of runs whose thoughts' summaries were counted.
fn is_summarized(row: &Thoughts, run: &Run) -> bool {
    row.source == "epam-airun" && run.m.to_lowercase().contains("claude")
}

/// What models of today thought, with how much each of them thinks on the whole taken out.
fn measured(all: &[Thoughts]) -> Vec<LengthRow> {
    let mut seen = Vec::new();
    for (text, row) in all.iter().enumerate() {
        for run in row.runs.iter().filter(|run| !is_summarized(row, run)) {
            if let Some(length) = run.think.filter(|&tokens| tokens > 0.0) {
                let writer = format!("{} {:?}", run.m, run.effort);
                seen.push(Measured { text, writer, log: length.ln() });
            }
        }
    }
    let effects = text_effects(&seen, all.len());
    let row = |(row, effect): (&Thoughts, Option<f64>)| {
        Some(LengthRow {
            text: row.text.clone()?,
            source: format!("thoughts {}", row.source),
            label: effect,
            length: effect?,
            weight: 2.0,
        })
    };
    all.iter().zip(effects).filter_map(row).collect()
}

/// All texts with their answers' lengths.
///
/// # Errors
/// When a file is not there or damaged.
pub(super) fn answers(folder: &Path) -> Result<Vec<LengthRow>, DataError> {
    /// Today's models write longer answers than the middle of those measured, which are mostly of 2023 and 2024.
    const TODAY: f64 = 0.45;
    let all: Vec<Answers> = read(folder, "answer-lengths.jsonl.gz")?;
    let told = |(text, row): (usize, &Answers)| {
        let one = |(writer, tokens): (&String, &Option<f64>)| {
            let tokens = tokens.filter(|&tokens| tokens > 0.0)?;
            Some(Measured { text, writer: writer.clone(), log: tokens.ln() })
        };
        row.out.iter().filter_map(one).collect::<Vec<_>>()
    };
    let seen: Vec<Measured> = all.iter().enumerate().flat_map(told).collect();
    let effects = text_effects(&seen, all.len());
    let row = |(row, effect): (&Answers, Option<f64>)| {
        let length = effect? + TODAY;
        let source = row.source.clone();
        Some(LengthRow { text: row.text.clone()?, source, label: Some(length), length, weight: 1.0 })
    };
    let mut rows: Vec<LengthRow> = all.iter().zip(effects).filter_map(row).collect();
    let everyday: Vec<Everyday> = read(folder, "everyday-prompts.jsonl.gz")?;
    rows.extend(everyday.into_iter().filter_map(|row| {
        let length = everyday_answer(&row.kind)?;
        let source = format!("everyday {}", row.source);
        Some(LengthRow { text: row.text, source, label: None, length, weight: 0.3 })
    }));
    rows.extend(worked_out(data::mmlu_pro(folder)?, "mmlu-pro", 30.0));
    rows.extend(worked_out(data::gsm8k(folder)?, "gsm8k answers", 15.0));
    Ok(rows)
}

/// Answers with their reasoning in them, which together count as so many texts.
fn worked_out(rows: Vec<data::Row>, source: &str, count: f64) -> Vec<LengthRow> {
    /// Characters to a token.
    const PER_TOKEN: f64 = 4.0;
    let weight = count / rows.len().max(1) as f64;
    let row = |row: data::Row| {
        let logs: Vec<f64> = row.out_chars.values().map(|&chars| (chars / PER_TOKEN).max(1.0).ln()).collect();
        let length = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        LengthRow { text: row.text(), source: source.to_owned(), label: None, length, weight }
    };
    rows.into_iter().map(row).collect()
}

fn standardized(values: &[f64]) -> Vec<f64> {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    values.iter().map(|value| (value - mean) / spread.max(1e-9)).collect()
}
