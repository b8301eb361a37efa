//! What has been learned about lengths and success: coefficients, as plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::decision::TaskClass;

use super::ability::ModelAbility;
use super::measured_curve::MeasuredCurve;
use super::text_priors::TextPriors;

/// One surface feature of a request's last user message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Always 1.
    Bias,
    /// ln(1 + bytes).
    Length,
    /// ln(1 + words).
    Words,
    /// ln(1 + how many numbers it has).
    Numbers,
    /// ln(1 + digits in those numbers).
    Digits,
    /// ln(1 + arithmetic operators other than times).
    Operators,
    /// ln(1 + multiplications).
    Products,
    /// ln(1 + elementary steps: one for an operator; for a product, digits on the left × digits on the right).
    Steps,
    /// ln(1 + words that multiply: per, each, rows, boxes, …).
    Rates,
    /// ln(1 + opening brackets).
    Brackets,
    /// ln(1 + bytes of the messages before it).
    Context,
    /// 1 where it has code.
    Code,
    /// 1 where it compares or offers options.
    Options,
    /// 1 where it asks about numbers in words only: two or more of them, and no operator.
    Story,
}

impl Feature {
    /// Every feature, in the order of [`Features`].
    pub const ALL: [Feature; 14] = [
        Feature::Bias,
        Feature::Length,
        Feature::Words,
        Feature::Numbers,
        Feature::Digits,
        Feature::Operators,
        Feature::Products,
        Feature::Steps,
        Feature::Rates,
        Feature::Brackets,
        Feature::Context,
        Feature::Code,
        Feature::Options,
        Feature::Story,
    ];
}

/// A number for each feature: the features of a request, or their weights. Written as a table by name, in
/// which an absent feature is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Feature, f64>", into = "BTreeMap<Feature, f64>")]
pub struct Features(pub [f64; Features::COUNT]);

impl Features {
    /// How many there are.
    pub const COUNT: usize = Feature::ALL.len();

    /// The sum of the products.
    pub fn dot(&self, other: &Features) -> f64 {
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }
}

impl Index<Feature> for Features {
    type Output = f64;
    fn index(&self, feature: Feature) -> &f64 {
        &self.0[feature as usize]
    }
}

impl IndexMut<Feature> for Features {
    fn index_mut(&mut self, feature: Feature) -> &mut f64 {
        &mut self.0[feature as usize]
    }
}

impl From<BTreeMap<Feature, f64>> for Features {
    fn from(named: BTreeMap<Feature, f64>) -> Features {
        let mut features = Features::default();
        for (feature, value) in named {
            features[feature] = value;
        }
        features
    }
}

impl From<Features> for BTreeMap<Feature, f64> {
    fn from(features: Features) -> BTreeMap<Feature, f64> {
        Feature::ALL.into_iter().zip(features.0).filter(|&(_, value)| value.abs() > 0.0).collect()
    }
}

/// What a model was fitted on. What lies outside it is unlikely to succeed, however easy it looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingDomain {
    /// The classes of work; all where empty.
    #[serde(default)]
    pub tasks: BTreeSet<TaskClass>,
    /// The words, in lower case; all where empty.
    #[serde(default)]
    pub words: BTreeSet<String>,
}

/// One model's coefficients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCalibration {
    /// The standard deviation of ln L about its mean.
    pub sigma: f64,
    /// How late success rises with a cut thought's share (see `ModelDemand::rise`).
    pub bend: f64,
    /// How early it has risen.
    pub saturation: f64,
    /// The mean length of an answer.
    pub solution: f64,
    /// How far the fit can be trusted, 0 to 1.
    pub confidence: f64,
    /// mu of the thinking length is the dot product with the features.
    pub thinking: Features,
    /// The logit of success after a finished thought is the dot product with the features.
    pub done: Features,
    /// The logit of success without a thought, likewise.
    pub blind: Features,
    /// What it was fitted on.
    #[serde(default)]
    pub domain: TrainingDomain,
}

/// Coefficients for every model, and those for a model never seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// For a model without its own.
    pub prior: ModelCalibration,
    /// By model.
    #[serde(default)]
    pub models: BTreeMap<Arc<str>, ModelCalibration>,
    /// What a text says of models without their own coefficients. It has files of its own.
    #[serde(skip)]
    pub priors: Arc<TextPriors>,
    /// How able each model is: as the operator states, as scores of it were published, or as is guessed.
    #[serde(skip)]
    pub abilities: BTreeMap<Arc<str>, ModelAbility>,
    /// How long a model's thoughts usually are, where that is known: the logarithm of their median over everyday requests.
    #[serde(skip)]
    pub thoughts: BTreeMap<Arc<str>, f64>,
    /// What was measured of models on their operator's own tasks.
    #[serde(skip)]
    pub curves: BTreeMap<Arc<str>, MeasuredCurve>,
}

impl Calibration {
    /// A model's coefficients, or the prior's.
    pub fn model(&self, name: &str) -> &ModelCalibration {
        self.models.get(name).unwrap_or(&self.prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_by_name_and_an_absent_one_is_zero() {
        let weights: Features = toml::from_str("bias = 2.0\nsteps = 0.5").unwrap();
        assert!((weights.0.iter().sum::<f64>() - 2.5).abs() < 1e-12);
        assert!((weights[Feature::Steps] - 0.5).abs() < 1e-12);
        assert!(toml::from_str::<Features>("stepps = 0.5").is_err());
    }

    #[test]
    fn features_stand_where_their_order_says() {
        for (i, feature) in Feature::ALL.into_iter().enumerate() {
            assert_eq!(feature as usize, i);
        }
    }
}
