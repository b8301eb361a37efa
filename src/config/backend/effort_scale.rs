//! `efforts` of a model: the words of its effort scale, and how much it usually thinks at each.

use crate::config::reader::Section;
use stint_types::catalog::{EFFORT_WORDS, EffortLevel, effort_rank};
use stint_types::units::Tokens;

/// The scale of one model.
pub(super) fn levels(section: &Section<'_>) -> Vec<EffortLevel> {
    let levels = section.sections("efforts").into_iter().filter_map(|level| {
        let word = level.require::<String>("word", "write what the upstream calls it, like \"low\"");
        let usual =
            level.require::<Tokens>("usual", "write how many tokens it usually thinks at it, like 300");
        Some(EffortLevel { word: word?, usual: usual? })
    });
    let levels: Vec<EffortLevel> = levels.collect();
    if !levels.is_sorted_by(|lower, higher| lower.usual < higher.usual) {
        section.reject(
            "efforts",
            "not in order",
            "write the lowest first, each with more tokens than the last",
        );
    }
    let known = levels.iter().filter_map(|level| Some((effort_rank(&level.word)?, &level.word)));
    let known: Vec<_> = known.collect();
    if let Some(pair) = known.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let what = format!("\"{}\" stands after \"{}\"", pair[1].1, pair[0].1);
        let remedy = format!("keep to their order: {}", EFFORT_WORDS.join(", "));
        section.reject("efforts", what, remedy);
    }
    levels
}
