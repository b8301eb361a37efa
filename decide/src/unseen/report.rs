//! The tables.

use std::fmt::Write;

use crate::bootstrap::{Draws, draws};
use crate::routing::score_shown;

use super::trial::{Finding, Stage, Subject};

/// How often the models are drawn anew.
const DRAWS: usize = 400;

/// What is learned before, row by row.
const STAGES: [(&str, Stage); 8] = [
    ("nothing", Stage { own: 0, others: false, cut: None }),
    ("8 other models, 40 thoughts each", Stage { own: 0, others: true, cut: None }),
    ("5 of its own", Stage { own: 5, others: false, cut: None }),
    ("the others, and 5 of its own", Stage { own: 5, others: true, cut: None }),
    ("the others, and 20 of its own", Stage { own: 20, others: true, cut: None }),
    ("160 of its own", Stage { own: 160, others: false, cut: None }),
    ("the others, and 160 of its own", Stage { own: 160, others: true, cut: None }),
    ("160 of its own, cut at the predicted median", Stage { own: 160, others: false, cut: Some(1.0) }),
];

/// All stages of one world.
pub(super) fn world(name: &str, subjects: &[Subject]) -> String {
    let texts = subjects.iter().map(Subject::texts).sum::<usize>() / subjects.len().max(1);
    let mut text = format!(
        "\n\n## {name}\n\n{} models, measured on {texts} texts each on average.\n\n| learned before | rank correlation | beyond \
         P99, % | beyond P90, % | ln L, real less foretold |\n|---|---|---|---|---|\n",
        subjects.len()
    );
    let counts = draws(subjects.len(), DRAWS, 7);
    for (name, stage) in STAGES {
        let found: Vec<Finding> = subjects.iter().map(|subject| subject.find(stage, subjects)).collect();
        let over = |value: &dyn Fn(&Finding) -> f64| {
            Draws::of(&counts, |counts| {
                let whole: f64 = counts.iter().sum();
                found.iter().zip(counts).map(|(one, count)| value(one) * count).sum::<f64>() / whole
            })
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} |",
            score_shown(over(&|one| one.rank).interval(), 2),
            score_shown(over(&|one| 100.0 * one.beyond[0]).interval(), 1),
            score_shown(over(&|one| 100.0 * one.beyond[1]).interval(), 1),
            score_shown(over(&|one| one.bias).interval(), 2),
        );
    }
    text.pop();
    text
}
