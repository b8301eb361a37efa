//! What many models' answers to many questions say of a new question, as plain data: words' and signs' weights on
//! a few traits, and how models respond to them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How many traits a question has: the first seven tell models' successes apart, the last is how long they write.
pub const TRAITS: usize = 8;
/// How many surface features there are (see `estimate::surface`).
pub const SURFACE_FEATURES: usize = 48;

/// One word, number or sign, or a pair of neighbours, in the place that its hash has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gram {
    /// Eight more bits of its hash, which distinguish it from other grams.
    pub fingerprint: u8,
    /// How rare it is: its inverse document frequency in sixteenths; 0 where the place is empty.
    pub rarity: u8,
    /// Its weight on each trait, in units of `Prior::scales`.
    pub weights: [i8; TRAITS],
}

/// How much each kind of feature is believed, by how familiar the question is: `at_none + more·familiarity`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Blend {
    /// Of surface features.
    pub surface: (f64, f64),
    /// Of words.
    pub grams: (f64, f64),
    /// Of nothing: what is added in any case.
    pub level: (f64, f64),
}

/// How one model responds to a question's traits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loadings {
    /// The logit of success on a question whose traits are all zero.
    pub level: f64,
    /// What each trait adds.
    pub traits: [f64; TRAITS],
    /// The mean of ln(tokens written) where all traits are zero.
    pub length: f64,
    /// What each trait adds.
    pub lengths: [f64; TRAITS],
    /// The standard deviation about that.
    pub sigma: f64,
}

/// The loadings of a model of which only its ability is known, by the logit of that ability: a line through the
/// models that are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AbilityCurve {
    /// At logit 0, an ability of ½.
    pub at_half: Loadings,
    /// What each unit of the logit adds.
    pub slope: Loadings,
}

/// The prior that ships with the binary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prior {
    /// A power of two of places.
    pub grams: Vec<Gram>,
    /// What one unit of a gram's weight is, by trait.
    pub scales: [f64; TRAITS],
    /// Each surface feature's usual value, and its deviation from that.
    pub usual: Vec<(f64, f64)>,
    /// The weight on each trait of each surface feature's deviation, then of the deviations' squares.
    pub surface: Vec<[f64; TRAITS]>,
    /// How surface and words are mixed, by trait.
    pub blends: [Blend; TRAITS],
    /// The models that are known.
    pub models: BTreeMap<Arc<str>, Loadings>,
    /// All others.
    pub curve: AbilityCurve,
}

impl Loadings {
    /// The logit of success on a question with such traits.
    pub fn logit(&self, traits: &[f64; TRAITS]) -> f64 {
        self.level + dot(&self.traits, traits)
    }

    /// The mean of ln(tokens written).
    pub fn mu(&self, traits: &[f64; TRAITS]) -> f64 {
        self.length + dot(&self.lengths, traits)
    }

    fn plus(&self, other: &Loadings, times: f64) -> Loadings {
        let add = |a: &[f64; TRAITS], b: &[f64; TRAITS]| std::array::from_fn(|i| a[i] + times * b[i]);
        Loadings {
            level: self.level + times * other.level,
            traits: add(&self.traits, &other.traits),
            length: self.length + times * other.length,
            lengths: add(&self.lengths, &other.lengths),
            sigma: (self.sigma + times * other.sigma).max(0.05),
        }
    }
}

impl AbilityCurve {
    /// The loadings at an ability, given as its logit. Beyond the best and the worst models that are known only
    /// the level moves on.
    pub fn at(&self, logit: f64) -> Loadings {
        const KNOWN: f64 = 1.5;
        let level = self.at_half.level + logit * self.slope.level;
        Loadings { level, ..self.at_half.plus(&self.slope, logit.clamp(-KNOWN, KNOWN)) }
    }
}

fn dot(left: &[f64; TRAITS], right: &[f64; TRAITS]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
