//! What is believed about one model: its sums, turned into corrections of the prior's predictions.

use stint_types::catalog::{ModelDemand, TaskClass};
use stint_types::units::Chance;

use super::belief::{self, Belief};
use super::demand_summary::{CLASSES, DemandSummary, class_index};
use super::lengths::LengthBelief;
use super::model_state::ModelState;
use super::settings::Settings;

/// The variance that ln bend has beforehand.
const BEND_VARIANCE: f64 = 0.25;

/// However unsure of itself a prior is, it counts for so many outcomes.
const PRIOR_WEIGHT_MIN: f64 = 1.0;

/// What is believed about one model: what `adjust` reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelBelief {
    pub(super) success: Belief,
    lengths: LengthBelief,
    /// What the spread is multiplied by.
    spread_factor: f64,
    /// By class, what ln bend is more than predicted.
    bends: [f64; CLASSES],
}

impl ModelBelief {
    /// What follows from the sums of all replicas.
    pub(super) fn of(state: &ModelState, others: Option<&ModelState>, settings: &Settings) -> ModelBelief {
        let forget = settings.forget();
        let judged = state.judged.combined_with(others.map(|other| &other.judged), forget);
        let seen = state.seen.combined_with(others.map(|other| &other.seen), forget);
        let kept = forget.powf(judged.ticks()) * settings.kept_after_alarms(state.alarms);
        let (success, bends) = judged.sums.split_at(belief::SUMS);
        let success = Belief::of(state.prior_weight, kept, success);
        ModelBelief {
            spread_factor: settings.spread_factor(success.outcomes),
            success,
            lengths: LengthBelief::of(&seen.sums),
            bends: std::array::from_fn(|class| bend(&bends[2 * class..2 * class + 2])),
        }
    }

    /// Corrects the prior's prediction, and says how sure that is.
    pub(super) fn adjust(&self, context: &DemandSummary, class: TaskClass, demand: &mut ModelDemand) {
        let (finished, none) = (context.row(class, demand, 1.0), context.row(class, demand, 0.0));
        demand.done = Chance::new(demand.done.get() + self.success.correction(&finished));
        demand.blind = Chance::new(demand.blind.get() + self.success.correction(&none));
        demand.spread = self.spread_factor * self.success.spread(&finished);
        demand.bend *= self.bends[class_index(class)].exp();
        self.lengths.adjust(class_index(class), &finished, demand);
    }
}

fn bend(sums: &[f64]) -> f64 {
    let &[squares, products] = sums else { return 0.0 };
    (products / (squares + 1.0 / BEND_VARIANCE)).clamp(-1.5, 1.5)
}

/// How many outcomes a prediction counts for that is this unsure of itself.
pub(super) fn prior_weight(
    context: &DemandSummary,
    class: TaskClass,
    predicted: &ModelDemand,
    settings: &Settings,
) -> f64 {
    if predicted.spread <= 0.0 {
        return settings.prior_weight;
    }
    let square: f64 = context.row(class, predicted, 1.0).iter().map(|x| x * x).sum();
    let most = settings.prior_weight.max(PRIOR_WEIGHT_MIN);
    (0.25 * square / predicted.spread.powi(2)).clamp(PRIOR_WEIGHT_MIN, most)
}
