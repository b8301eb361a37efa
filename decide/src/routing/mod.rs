//! Routing and difficulty, measured as others measure it.

pub mod baselines;
mod choice;
mod costs;
pub mod own;
pub mod pool;
mod report;
pub mod score;
pub mod study;

use std::path::Path;

use crate::data::{self, DataError, Row};
use crate::folds::{self, Fold};

pub use costs::{dollars, price};
pub use pool::{Goal, Kind, Pool};
pub use report::{Figure, Report};
pub use score::shown as score_shown;
pub use study::{Results, Router, Study};

/// Seeds of the random folds: more where there are fewer questions. None was looked at while the estimate was made.
const SEEDS_MMLU: [u64; 2] = [211, 212];
const SEEDS_GSM8K: [u64; 5] = [221, 222, 223, 224, 225];
const FOLDS: usize = 5;

/// The models of MMLU-Pro that are paired or priced.
pub const SMALL: &str = "Meta-Llama-3_1-8B-Instruct";
/// The larger one of its family.
pub const LARGE: &str = "Meta-Llama-3_1-70B-Instruct";
/// A small model of another family.
pub const MINI: &str = "Phi-3-mini-4k-instruct";
/// The strongest.
pub const PRO: &str = "gemini-1.5-pro-002";
/// The weaker one on GSM8K, as MMLU-Pro's data names it.
pub const MIXTRAL: &str = "Mixtral-8x7B-Instruct-v0.1";

/// Runs everything and tells of it.
///
/// # Errors
/// When the data cannot be read.
pub fn run(data: &Path, routers: &[&dyn Router]) -> Result<Report, DataError> {
    let (mmlu, gsm8k) = (data::mmlu_pro(data)?, data::gsm8k(data)?);
    let both: Vec<Row> = mmlu.iter().chain(&gsm8k).cloned().collect();
    let (first, rest) = (mmlu.len(), gsm8k.len());
    let (mmlu, gsm8k, both) = (Pool::of(mmlu), Pool::of(gsm8k), Pool::of(both));
    let mut report = Report::opening(include_str!("preface.md").trim_end());
    let mmlu_study = |name, repeats| Study { name, pool: &mmlu, goals: mmlu_goals(&mmlu), repeats };
    let random =
        |rows: usize, seeds: &[u64]| seeds.iter().map(|&seed| folds::random(rows, FOLDS, seed)).collect();
    report.add(
        &mmlu_study("MMLU-Pro, whole categories left out", vec![folds::by_category(&mmlu.rows)]),
        routers,
    );
    let transfer =
        Fold { name: "GSM8K".into(), train: (0..first).collect(), test: (first..first + rest).collect() };
    let name = "GSM8K, fitted on MMLU-Pro alone";
    report.add(
        &Study { name, pool: &both, goals: vec![transferred(&both)], repeats: vec![vec![transfer]] },
        routers,
    );
    let goal = gsm8k.goal("Mixtral-8x7B → GPT-4", Kind::gain("mixtral-8x7b", "gpt-4"));
    report.add(
        &Study {
            name: "GSM8K, five folds",
            pool: &gsm8k,
            goals: vec![goal],
            repeats: random(rest, &SEEDS_GSM8K),
        },
        routers,
    );
    report.add(&mmlu_study("MMLU-Pro, five folds", random(first, &SEEDS_MMLU)), routers);
    Ok(report)
}

fn mmlu_goals(pool: &Pool) -> Vec<Goal> {
    let mut goals = vec![
        pool.goal("Llama-3.1 8B → 70B", Kind::gain(SMALL, LARGE)),
        pool.goal("Phi-3-mini → Gemini-1.5-pro", Kind::gain(MINI, PRO)),
        pool.goal("difficulty", Kind::Difficulty),
    ];
    goals.extend(
        [MINI, SMALL, MIXTRAL, LARGE, PRO].map(|model| pool.goal(model, Kind::Success(model.into()))),
    );
    goals
}

/// The gain of GPT-4 over Mixtral, which on MMLU-Pro's rows is that of Gemini over Mixtral.
fn transferred(pool: &Pool) -> Goal {
    let mut goal = pool.goal("Mixtral-8x7B → GPT-4", Kind::gain("mixtral-8x7b", "gpt-4"));
    let stand_in = pool.goal("", Kind::gain(MIXTRAL, PRO));
    goal.truth.iter_mut().zip(stand_in.truth).for_each(|(truth, other)| *truth = truth.or(other));
    goal
}
