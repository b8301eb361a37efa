//! Routing after some answers were judged: what `/v1/plan` would believe, through the product's own estimate and store.
//!
//! The measured models are unknown by name: each is told by a stated ability, its accuracy over all questions of the set. The
//! learner's variances were chosen on six pairs of other models of MMLU-Pro and on GSM8K's pair.

mod mix;
mod report;
mod rules;
mod trial;
mod world;

use std::error::Error;
use std::path::Path;

use crate::data;
use stint_decide::estimate;

use report::Report;
use world::World;

/// Pairs of MMLU-Pro, the weaker model first: of one family and of several, of like and of unlike accuracy.
const PAIRS: [[&str; 2]; 6] = [
    ["Phi-3-mini-4k-instruct", "gemini-1.5-pro-002"],
    ["Mixtral-8x7B-Instruct-v0.1", "Meta-Llama-3_1-70B-Instruct"],
    ["mathstral-7B", "Qwen1.5-110B"],
    ["jamba-1.5-large", "DeepSeek-Coder-V2"],
    ["c4ai-command-r-v01", "Meta-Llama-3_1-8B-Instruct"],
    ["Meta-Llama-3_1-8B-Instruct", "Meta-Llama-3_1-70B-Instruct"],
];
/// The pair of GSM8K.
const GSM8K: [[&str; 2]; 1] = [["mixtral-8x7b", "gpt-4"]];
/// How many questions are judged.
const JUDGED: usize = 1_500;

/// Measures everything.
///
/// # Errors
/// When the data, or the prior that ships, cannot be read.
pub fn report(folder: &Path) -> Result<String, Box<dyn Error>> {
    let (mmlu, gsm8k) = (data::mmlu_pro(folder)?, data::gsm8k(folder)?);
    let shipped = estimate::shipped()?;
    let measured: Vec<&str> = PAIRS.iter().flatten().copied().collect();
    let mut report = Report::opening(include_str!("preface.md").trim_end());
    for world in [World::beside, World::among, World::beyond] {
        report.world(&world(&mmlu, &measured, &shipped), &PAIRS);
    }
    let divisions = World::divisions(&mmlu, &measured, &shipped);
    report.mixes("four priced models where the categories are divided in other ways", &divisions);
    let worlds = World::folds(&gsm8k, &shipped);
    report.folds("GSM8K, the shipped prior, five folds", &worlds, &GSM8K);
    Ok(report.text)
}
