//! What has been learned about lengths and success: coefficients, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One surface feature of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Always 1.
    Bias,
    /// ln(1 + characters of the last user message).
    Length,
    /// ln(1 + how many numbers it has).
    Numbers,
    /// ln(1 + digits in those numbers).
    Digits,
    /// ln(1 + arithmetic operators other than times).
    Operators,
    /// ln(1 + multiplications).
    Products,
    /// ln(1 + opening brackets).
    Brackets,
    /// ln(1 + words).
    Words,
    /// 1 where it has code.
    Code,
    /// 1 where it compares or offers options.
    Options,
}

impl Feature {
    /// Every feature, in the order of [`Features`].
    pub const ALL: [Feature; 10] = [
        Feature::Bias,
        Feature::Length,
        Feature::Numbers,
        Feature::Digits,
        Feature::Operators,
        Feature::Products,
        Feature::Brackets,
        Feature::Words,
        Feature::Code,
        Feature::Options,
    ];
}

/// The features of a request, in the order of [`Feature::ALL`].
pub type Features = [f64; Feature::ALL.len()];

/// One model's coefficients.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCalibration {
    /// mu of the thinking length is the dot product with the features.
    pub thinking: Features,
    /// The standard deviation of ln L about it.
    pub sigma: f64,
    /// The logit of success after a finished thought is the dot product with the features.
    pub done: Features,
    /// The logit of success without a thought, likewise.
    pub blind: Features,
    /// How success rises with a cut thought's share (see `ModelDemand::bend`).
    pub bend: f64,
    /// The mean length of an answer.
    pub solution: f64,
    /// How far the fit can be trusted, 0 to 1.
    pub confidence: f64,
}

/// Coefficients for every model, and those for a model never seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// For a model without its own.
    pub prior: ModelCalibration,
    /// By model.
    pub models: BTreeMap<Arc<str>, ModelCalibration>,
}
