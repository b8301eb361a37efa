//! Reads traces.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;
use stint_decide::estimate::{BudgetedAnswer, CalibrationTrace};
use stint_types::units::Tokens;

#[derive(Deserialize)]
struct Line {
    question: String,
    thinking_tokens: u64,
    #[serde(default)]
    cut: bool,
    solution_tokens: u64,
    correct: BTreeMap<String, bool>,
}

/// All traces of a file.
pub(crate) fn read(path: &str) -> Result<Vec<CalibrationTrace>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| trace(serde_json::from_str(line)?)).collect()
}

fn trace(line: Line) -> Result<CalibrationTrace, Box<dyn Error>> {
    let right = *line.correct.get("full").ok_or("a trace has no \"full\" answer")?;
    let budgets = line.correct.into_iter().filter(|(key, _)| key != "full");
    let cuts = budgets.map(|(key, right)| Ok(BudgetedAnswer { budget: Tokens(key.parse()?), right }));
    Ok(CalibrationTrace {
        question: line.question,
        thinking: Tokens(line.thinking_tokens),
        is_cut: line.cut,
        solution: Tokens(line.solution_tokens),
        right,
        cuts: cuts.collect::<Result<_, std::num::ParseIntError>>()?,
    })
}
