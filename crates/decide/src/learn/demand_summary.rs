//! What the prior says of a request as a whole, in a few numbers: the same few however many models there are.

use serde::{Deserialize, Serialize};

use stint_types::catalog::{Demand, ModelDemand, TaskClass};

/// How many features a belief about success has.
pub(super) const FEATURE_COUNT: usize = 8 + CLASSES;
/// How many kinds of work there are.
pub(super) const CLASSES: usize = 6;
/// How many outcomes the prior of a length counts for, and again how many the other classes count for in each. A class's mean
/// features take as many of the others, since they belong to its mean length.
pub(super) const CLASS_PRIOR: f64 = 20.0;

/// The predicted successes of all models summed up, and how much there is to read. Scaled so that a usual request
/// has values about as far from zero as one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DemandSummary {
    /// What the models are expected to reach on average.
    pub mean: f64,
    /// What the best of them is.
    pub best: f64,
    /// What the worst of them is.
    pub worst: f64,
    /// The logarithm of the longest prompt.
    pub prompt: f64,
}

/// A belief's features: all that a correction of one model's prediction may depend on.
pub(super) type FeatureRow = [f64; FEATURE_COUNT];

impl DemandSummary {
    /// Of a demand as the prior predicted it.
    pub fn of(demand: &Demand) -> DemandSummary {
        let (mut sum, mut best, mut worst, mut prompt, mut count) = (0.0, 0.0_f64, 1.0_f64, 0.0_f64, 0.0);
        for model in demand.models.values() {
            let chance = model.done.get();
            (sum, count) = (sum + chance, count + 1.0);
            (best, worst) = (best.max(chance), worst.min(chance));
            prompt = prompt.max(model.prompt.as_f64());
        }
        let mean = if count > 0.0 { sum / count } else { 0.5 };
        DemandSummary {
            mean: centred(mean),
            best: centred(best),
            worst: centred(worst),
            prompt: scaled((1.0 + prompt).ln(), 5.0, 1.5),
        }
    }

    /// The features of a model's success when `share` of its thought was there: 1 for a finished one, 0 for none.
    pub(super) fn row(&self, class: TaskClass, predicted: &ModelDemand, share: f64) -> FeatureRow {
        // How much less a class's own level is trusted than the level of all.
        const CLASS: f64 = 0.5;
        let (blind, done) = (predicted.blind.get(), predicted.done.get());
        let own = blind + (done - blind) * share;
        let mut row = [0.0; FEATURE_COUNT];
        row[..8].copy_from_slice(&[
            1.0,
            2.0 * share - 1.0,
            centred(own),
            self.mean,
            self.best,
            self.worst,
            self.prompt,
            scaled(predicted.thinking.mu, 5.5, 1.5),
        ]);
        row[8 + class_index(class)] = CLASS;
        row
    }
}

/// Where a class stands in tables by class.
pub(super) fn class_index(class: TaskClass) -> usize {
    match class {
        TaskClass::Math => 0,
        TaskClass::Code => 1,
        TaskClass::Extraction => 2,
        TaskClass::MultipleChoice => 3,
        TaskClass::Agentic => 4,
        TaskClass::Chat => 5,
    }
}

fn centred(chance: f64) -> f64 {
    scaled(chance, 0.5, 0.25)
}

fn scaled(value: f64, middle: f64, width: f64) -> f64 {
    ((value - middle) / width).clamp(-4.0, 4.0)
}
