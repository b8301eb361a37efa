//! How many tokens a model is billed for an image at most.

use crate::units::Tokens;

/// The width and height of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// What an image costs a model at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageTokens {
    /// The most for one image, whatever its size.
    pub max: Tokens,
    /// How its provider counts one whose size is known; nothing where that is not known, so that each counts as the most.
    pub rule: Option<ImageRule>,
}

/// How a provider counts an image of known size. What it scales down first only makes it fewer than these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRule {
    /// OpenAI's older models: scaled into a square of 2048 pixels and to 768 on the short side, then counted in squares of 512.
    Tiles {
        /// For the image itself, and all of it where its caller asks for low detail.
        base: u64,
        /// For each square.
        tile: u64,
    },
    /// Gemini's second generation: small ones are one tile, others are cut by two thirds of their short side.
    Crops {
        /// For each piece.
        tile: u64,
    },
    /// Most others: a number for each patch.
    Patches {
        /// The side of a patch in pixels, one at least.
        side: u32,
        /// Hundredths of a token for each patch.
        percent: u64,
        /// The most where its caller asks for low detail, if that limits it.
        low_max: Option<Tokens>,
        /// The most where its caller asks for high detail, if that limits it.
        high_max: Option<Tokens>,
    },
}

/// How closely a caller wants an image to be looked at (`detail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageDetail {
    /// `low`.
    Low,
    /// `high`.
    High,
    /// Nothing, or another word: as closely as the model can.
    Whole,
}

impl ImageDetail {
    /// What a word means.
    pub fn of(word: Option<&str>) -> ImageDetail {
        match word {
            Some("low") => ImageDetail::Low,
            Some("high") => ImageDetail::High,
            Some(_) | None => ImageDetail::Whole,
        }
    }
}

impl Default for ImageTokens {
    fn default() -> ImageTokens {
        ImageTokens { max: ImageTokens::MAX_UNKNOWN, rule: None }
    }
}

impl ImageTokens {
    /// Where nobody says what an image costs: more than any model bills that is known (48,600, OpenAI's at its largest).
    pub const MAX_UNKNOWN: Tokens = Tokens(65_536);

    /// The most for an image of that size, where its size is known.
    pub fn bound(&self, size: Option<ImageSize>, detail: ImageDetail) -> Tokens {
        let Some(rule) = self.rule else { return self.max };
        let by_detail = rule.most_at(detail);
        let by_size = size.map(|size| rule.tokens(size));
        // Low detail may enlarge a small image, so that there its size says nothing.
        let least = match detail {
            ImageDetail::Low => by_detail.or(by_size),
            ImageDetail::High | ImageDetail::Whole => [by_detail, by_size].into_iter().flatten().min(),
        };
        least.map_or(self.max, |least| least.min(self.max))
    }

    /// What holds for whichever of two.
    #[must_use]
    pub fn or_dearer(self, other: ImageTokens) -> ImageTokens {
        if self == other {
            return self;
        }
        ImageTokens { max: self.max.max(other.max), rule: None }
    }
}

impl ImageRule {
    fn most_at(self, detail: ImageDetail) -> Option<Tokens> {
        match (self, detail) {
            (ImageRule::Tiles { base, .. }, ImageDetail::Low) => Some(Tokens(base)),
            (ImageRule::Patches { low_max, .. }, ImageDetail::Low) => low_max,
            (ImageRule::Patches { high_max, .. }, ImageDetail::High) => high_max,
            (ImageRule::Tiles { .. } | ImageRule::Crops { .. } | ImageRule::Patches { .. }, _) => None,
        }
    }

    fn tokens(self, size: ImageSize) -> Tokens {
        let (width, height) = (u64::from(size.width), u64::from(size.height));
        Tokens(match self {
            ImageRule::Tiles { base, tile } => {
                let (width, height) = scaled(width, height, width.max(height), 2048);
                let (width, height) = scaled(width, height, width.min(height), 768);
                base.saturating_add(tile.saturating_mul(squares(width, height, 512)))
            }
            ImageRule::Crops { tile } if width.max(height) <= 384 => tile,
            ImageRule::Crops { tile } => {
                let side = (width.min(height) * 2 / 3).clamp(256, 768);
                tile.saturating_mul(squares(width, height, side))
            }
            ImageRule::Patches { side, percent, .. } => {
                let patches = squares(width, height, u64::from(side.max(1)));
                patches.saturating_mul(percent).div_ceil(100)
            }
        })
    }
}

/// The sides scaled so that one of so many pixels has no more than `most`. What is left over counts as a whole pixel.
fn scaled(width: u64, height: u64, one: u64, most: u64) -> (u64, u64) {
    if one <= most {
        return (width, height);
    }
    let side = |length: u64| (length * most).div_ceil(one);
    (side(width), side(height))
}

/// How many squares cover it.
fn squares(width: u64, height: u64, side: u64) -> u64 {
    width.div_ceil(side).saturating_mul(height.div_ceil(side)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILES: ImageTokens =
        ImageTokens { max: Tokens(1445), rule: Some(ImageRule::Tiles { base: 85, tile: 170 }) };
    const CROPS: ImageTokens = ImageTokens { max: Tokens(6192), rule: Some(ImageRule::Crops { tile: 258 }) };

    fn patches(side: u32, percent: u64, max: u64, low: Option<u64>, high: Option<u64>) -> ImageTokens {
        let (low_max, high_max) = (low.map(Tokens), high.map(Tokens));
        ImageTokens { max: Tokens(max), rule: Some(ImageRule::Patches { side, percent, low_max, high_max }) }
    }

    fn check(images: ImageTokens, size: (u32, u32), detail: Option<&str>, expected: u64) {
        let (width, height) = size;
        let size = Some(ImageSize { width, height });
        assert_eq!(images.bound(size, ImageDetail::of(detail)), Tokens(expected), "{size:?} {detail:?}");
    }

    #[test]
    fn tiles_are_counted_as_their_provider_counts_them() {
        // OpenAI's own examples.
        check(TILES, (1024, 1024), Some("high"), 765);
        check(TILES, (2048, 4096), None, 1105);
        check(TILES, (4096, 8192), Some("low"), 85);
        check(TILES, (128, 64), None, 255);
        check(TILES, (u32::MAX, u32::MAX), None, 765);
        check(TILES, (u32::MAX, 1), None, 765);
    }

    #[test]
    fn patches_are_counted_up_to_the_most_of_the_detail() {
        check(patches(32, 162, 2489, None, None), (1024, 1024), None, 1659);
        check(patches(32, 162, 2489, None, None), (4000, 4000), None, 2489);
        check(patches(28, 100, 4800, None, None), (1000, 1000), None, 1296);
        let newest = patches(32, 120, 36_000, Some(308), Some(3000));
        check(newest, (4000, 4000), None, 18_750);
        check(newest, (4000, 4000), Some("high"), 3000);
        check(newest, (32, 32), Some("high"), 2);
        check(newest, (32, 32), Some("low"), 308);
        check(newest, (u32::MAX, u32::MAX), Some("original"), 36_000);
    }

    #[test]
    fn crops_follow_the_short_side() {
        check(CROPS, (384, 384), None, 258);
        check(CROPS, (960, 540), None, 1548);
        check(CROPS, (u32::MAX, 1), None, 6192);
    }

    #[test]
    fn without_a_size_or_a_rule_an_image_costs_the_most() {
        assert_eq!(TILES.bound(None, ImageDetail::Whole), Tokens(1445));
        assert_eq!(TILES.bound(None, ImageDetail::Low), Tokens(85));
        let size = Some(ImageSize { width: 1, height: 1 });
        assert_eq!(ImageTokens::default().bound(size, ImageDetail::Low), ImageTokens::MAX_UNKNOWN);
        assert_eq!(TILES.or_dearer(CROPS), ImageTokens { max: Tokens(6192), rule: None });
        assert_eq!(TILES.or_dearer(TILES), TILES);
    }
}
