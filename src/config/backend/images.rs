//! `image_tokens` and `image_tokens_max` of a model: what it is billed for an image at most.

use crate::config::reader::Section;
use stint_types::catalog::{ImageRule, ImageTokens};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;

/// The range of any count here.
const COUNTS: std::ops::RangeInclusive<Tokens> = Tokens(1)..=Tokens(10_000_000);

/// How a provider counts.
#[derive(Debug, Clone, Copy)]
enum RuleKind {
    Tiles,
    Crops,
    Patches,
}

const RULES: [(&str, RuleKind); 3] =
    [("tiles", RuleKind::Tiles), ("crops", RuleKind::Crops), ("patches", RuleKind::Patches)];

/// Takes what a section says of images. Who says only the most means each image of any size.
pub(super) fn apply(section: &Section<'_>, declared: &mut DeclaredModel) {
    let is_told = section.has("image_tokens") || section.has("image_tokens_max");
    let max = section.within("image_tokens_max", COUNTS);
    let rule = section.has("image_tokens").then(|| rule(&section.section("image_tokens"))).flatten();
    if let Some(client) = declared.config.source.client_mut().filter(|_| is_told) {
        client.images = ImageTokens { max: max.unwrap_or(client.images.max), rule };
    }
}

fn rule(section: &Section<'_>) -> Option<ImageRule> {
    if !section.has("rule") {
        section.reject("rule", "missing", "write \"tiles\", \"crops\" or \"patches\"");
    }
    let count = |key| section.within(key, COUNTS).map(|tokens: Tokens| tokens.0);
    let needed = |key| {
        section.require::<Tokens>(key, "write how many, like 170");
        count(key)
    };
    Some(match section.word("rule", &RULES)? {
        RuleKind::Tiles => ImageRule::Tiles { base: needed("base")?, tile: needed("tile")? },
        RuleKind::Crops => ImageRule::Crops { tile: needed("tile")? },
        RuleKind::Patches => ImageRule::Patches {
            side: u32::try_from(needed("side")?).ok()?,
            percent: count("percent").unwrap_or(100),
            low_max: count("low_max").map(Tokens),
            high_max: count("high_max").map(Tokens),
        },
    })
}
