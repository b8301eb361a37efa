//! A model's levels, from its scores.
//!
//! Each score tells the general level by its benchmark's line, with the spread of models about it. What they tell is weighed by
//! its precision. Where a benchmark belongs to a class of work, half of its deviation from the general level is taken for the
//! class's own; where no score of a class was published, what is usual. If nothing was published with a thought, or nothing
//! without one, the other is moved by what a thought usually adds.

use stint_types::catalog::{AbilityLevel, ClassLevels, ModelAbility, TaskClass};
use stint_types::units::Chance;

use super::benchmark::{Benchmark, BenchmarkScores, PublishedScores};
use super::fitted::SHIPPED;
use super::scale::{
    AbilityScale, BenchmarkLine, BenchmarkLines, CLASS_SHARE, COMMON_SPREAD, ScoreReader, USUAL_SHARE,
};

/// The levels that some scores tell; nothing where there is no score.
pub fn levels_from_scores(reader: ScoreReader<'_>, scores: &BenchmarkScores) -> Option<ClassLevels> {
    let told: Vec<AbilityLevel> =
        scores.iter().map(|(benchmark, score)| read(reader.general, *benchmark, *score)).collect();
    let precision: f64 = told.iter().map(|level| level.spread.powi(-2)).sum();
    let weighed: f64 = told.iter().map(|level| level.logit * level.spread.powi(-2)).sum();
    let spread = precision.sqrt().recip().hypot(COMMON_SPREAD);
    let general = AbilityLevel { logit: weighed / precision, spread };
    let of = |class| class_level(general, class, reader, scores);
    (!told.is_empty()).then(|| ClassLevels {
        general,
        math: of(TaskClass::Math),
        code: of(TaskClass::Code),
        agentic: of(TaskClass::Agentic),
    })
}

/// The level of an unknown model.
pub fn usual_level() -> AbilityLevel {
    AbilityLevel::from_share(USUAL_SHARE, SHIPPED.guess.usual_spread)
}

/// How able a model with these scores is; nothing where there is no score.
pub fn model_ability(scale: &AbilityScale, scores: &PublishedScores, thinks: bool) -> Option<ModelAbility> {
    let thinking = levels_from_scores(scale.reader(true), &scores.thinking);
    let plain = levels_from_scores(scale.reader(false), &scores.plain);
    let plain = plain.or_else(|| thinking.map(|levels| without_thought(scale, &levels)))?;
    let thinking = thinking.unwrap_or_else(|| with_thought(scale, &plain));
    Some(ModelAbility { thinking: thinks.then_some(thinking), plain })
}

/// The levels with a thought of a model that has these without.
pub(super) fn with_thought(scale: &AbilityScale, plain: &ClassLevels) -> ClassLevels {
    plain.zip(&scale.thought, |level, gap| level.moved(gap.logit, gap.spread))
}

/// The levels without a thought of a model that has these with one.
pub(super) fn without_thought(scale: &AbilityScale, thinking: &ClassLevels) -> ClassLevels {
    thinking.zip(&scale.thought, |level, gap| level.moved(-gap.logit, gap.spread))
}

/// The level that one score tells by its benchmark's line.
fn read(lines: &BenchmarkLines, benchmark: Benchmark, score: Chance) -> AbilityLevel {
    let BenchmarkLine { at_half, slope, spread } = lines[benchmark as usize];
    AbilityLevel { logit: at_half + slope * benchmark.logit(score), spread }
}

/// A class's level: the general one, and the class's share of how its benchmarks deviate from it.
fn class_level(
    general: AbilityLevel,
    class: TaskClass,
    reader: ScoreReader<'_>,
    scores: &BenchmarkScores,
) -> AbilityLevel {
    let of_class = |benchmark: &Benchmark| benchmark.class() == Some(class);
    let widths = Benchmark::ALL.iter().filter(|(_, benchmark)| of_class(benchmark));
    let width = mean(widths.map(|(_, benchmark)| reader.class[*benchmark as usize].spread));
    let own = scores.iter().filter(|(benchmark, _)| of_class(benchmark));
    let deviations: Vec<f64> =
        own.map(|(benchmark, score)| read(reader.class, *benchmark, *score).logit - general.logit).collect();
    if deviations.is_empty() {
        return general.moved(reader.usual.of(class).logit, width * CLASS_SHARE.sqrt());
    }
    let spread = width * (CLASS_SHARE * (1.0 - CLASS_SHARE)).sqrt();
    general.moved(CLASS_SHARE * mean(deviations.into_iter()), spread)
}

/// The mean; 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(of: &[(Benchmark, f64)]) -> BenchmarkScores {
        of.iter().map(|(benchmark, score)| (*benchmark, Chance::new(*score))).collect()
    }

    fn levels(of: &[(Benchmark, f64)]) -> ClassLevels {
        levels_from_scores(SHIPPED.reader(true), &scores(of)).unwrap()
    }

    #[test]
    fn a_model_with_one_score_has_a_level_and_more_scores_make_it_surer() {
        let repairs = levels(&[(Benchmark::SweBenchVerified, 0.75)]);
        let both = levels(&[(Benchmark::SweBenchVerified, 0.75), (Benchmark::GpqaDiamond, 0.85)]);
        assert!((1.0..3.0).contains(&repairs.general.logit), "{repairs:?}");
        assert!(both.general.spread < repairs.general.spread);
        assert_eq!(levels_from_scores(SHIPPED.reader(false), &scores(&[])), None);
    }

    #[test]
    fn a_model_that_is_better_in_mathematics_than_its_knowledge_tells_has_the_higher_level_there_alone() {
        let knowing = (Benchmark::MmluPro, 0.75);
        let (weak, strong) =
            (levels(&[knowing, (Benchmark::Aime2025, 0.1)]), levels(&[knowing, (Benchmark::Aime2025, 0.9)]));
        assert!(strong.math.logit - weak.math.logit > strong.code.logit - weak.code.logit);
        assert!(weak.math.logit < weak.general.logit && strong.math.logit > strong.general.logit);
        assert!(strong.math.spread < levels(&[knowing]).math.spread, "what was never measured is less sure");
    }

    #[test]
    fn what_was_published_of_one_way_alone_tells_the_other_less_surely() {
        let published =
            PublishedScores { plain: scores(&[(Benchmark::MmluPro, 0.7)]), ..PublishedScores::default() };
        let ability = model_ability(&SHIPPED, &published, true).unwrap();
        let thinking = ability.thinking.unwrap().general;
        assert!(thinking.logit > ability.plain.general.logit);
        assert!(thinking.spread > ability.plain.general.spread);
        assert_eq!(model_ability(&SHIPPED, &published, false).unwrap().thinking, None);
    }
}
