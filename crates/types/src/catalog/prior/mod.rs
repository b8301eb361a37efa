//! What was learned before a gateway runs: from many models' answers, and from an operator's own.

mod ability;
mod calibration;
mod lengths;
mod measured_curve;
mod text_priors;
mod weights;

pub use ability::{AbilityLevel, ClassLevels, ModelAbility};
pub use calibration::{Calibration, Feature, Features, ModelCalibration, TrainingDomain};
pub use lengths::{LENGTH_FEATURES, LengthGram, LengthPrior, LengthWeights, TEXT_KINDS};
pub use measured_curve::{CurvePoint, CurveRecord, MeasuredCurve};
pub use text_priors::{GramPair, TextPriors};
pub use weights::{AbilityCurve, Blend, Gram, Loadings, Prior, SURFACE_FEATURES, TRAITS};
