//! What is believed about one model: its sums, turned into corrections of the prior's predictions.

use std::sync::Arc;

use stint_types::catalog::ModelDemand;
use stint_types::units::Chance;

use super::belief::{Belief, LogitBelief};
use super::evidence;
use super::features::{
    CLASSES, FeatureRow, LEVEL, OWN, RequestFeatures, SHARE, logistic, offset, own_feature,
};
use super::lengths::{self, LengthBelief};
use super::model_state::ModelState;
use super::settings::Settings;
use super::shared_belief::SharedBelief;
use super::shared_levels::{ModelEvidence, SharedLevels};
use super::variances::{self, OUTCOME_VARIANCE, PRIOR_UNIT};
use super::word_sums::WordSums;

/// The variance that ln saturation has beforehand.
const SATURATION_VARIANCE: f64 = 0.25;
/// How far outcomes move it at most. From a saturation of 4, a fifth of a thought then keeps 42 to 77 % of its gain; published curves
/// keep 52 to 74 %.
const SATURATION_SHIFT_MAX: f64 = 0.5;
/// However unsure of itself a prior is, it counts for so many outcomes.
const PRIOR_WEIGHT_MIN: f64 = 1.0;
/// What the prior counts at least when its time is long past, in outcomes.
const PRIOR_LEFT_MIN: f64 = 10.0;

/// Lengths are made anew when the outcomes have grown by one part in so many, and after so many at the latest.
const LENGTHS_PART: f64 = 64.0;
const LENGTHS_LATEST: f64 = 32.0;

/// What goes for all models: the weights that they share, and the levels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    pub success: &'a SharedBelief,
    pub levels: &'a SharedLevels,
}

/// What is believed about one model: what `adjust` reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelBelief {
    pub(super) success: Arc<Belief>,
    lengths: LengthBelief,
    /// How many outcomes had been seen when that was made.
    lengths_at: f64,
    /// What the spread is multiplied by.
    spread_factor: f64,
    /// By class, what ln saturation is more than predicted.
    saturations: [f64; CLASSES],
}

impl ModelBelief {
    /// What follows from the sums of all replicas.
    pub(super) fn of(state: &ModelState, others: Option<&ModelState>, settings: &Settings) -> ModelBelief {
        let forget = settings.forget();
        let judged = state.judged.combined_with(others.map(|other| &other.judged), forget);
        let kept = forget.powf(judged.ticks()) * settings.kept_after_alarms(state.alarms);
        let prior_weight = (state.prior_weight * kept).max(PRIOR_LEFT_MIN.min(state.prior_weight));
        let (success, cuts) = judged.sums.split_at(evidence::SUMS);
        let success = belief(prior_weight, success, &judged.words, settings);
        ModelBelief {
            spread_factor: settings.spread_factor(success.outcomes),
            success: Arc::new(success),
            lengths: length_belief(state, others, settings),
            lengths_at: state.seen.ticks(),
            saturations: std::array::from_fn(|class| saturation(&cuts[2 * class..2 * class + 2])),
        }
    }

    /// The same, with what follows from the sums once outcomes came that nobody has judged.
    pub(super) fn with_lengths(
        &self,
        state: &ModelState,
        others: Option<&ModelState>,
        settings: &Settings,
    ) -> ModelBelief {
        let (lengths, lengths_at) = (length_belief(state, others, settings), state.seen.ticks());
        ModelBelief { success: self.success.clone(), lengths, lengths_at, ..*self }
    }

    /// Whether enough outcomes came since for lengths to be made anew: while few were seen each of them counts, later one in so many,
    /// since each moves them by less.
    pub(super) fn lengths_are_due(&self, state: &ModelState) -> bool {
        let seen = state.seen.ticks();
        seen - self.lengths_at >= (seen / LENGTHS_PART).min(LENGTHS_LATEST)
    }

    /// Corrects the prior's prediction, and says how sure that is.
    pub(super) fn adjust(
        &self,
        (name, shared): (&str, Shared<'_>),
        features: &RequestFeatures<'_>,
        class: usize,
        demand: &mut ModelDemand,
    ) {
        let finished = features.row(demand, 1.0);
        success(&self.success, (name, shared), (features, &finished), demand);
        demand.spread *= self.spread_factor;
        demand.saturation *= self.saturations[class].exp();
        self.lengths.adjust(name, shared.levels, class, (features, &finished), demand);
    }

    /// What is believed of its lengths.
    pub(super) fn lengths(&self) -> &LengthBelief {
        &self.lengths
    }

    /// What its outcomes say to other models.
    pub(super) fn evidence(&self) -> ModelEvidence {
        ModelEvidence { success: self.success.level_evidence(), lengths: *self.lengths.evidence() }
    }

    /// What is believed of its logit on such a request, before the outcome.
    pub(super) fn logit(
        &self,
        (name, shared): (&str, Shared<'_>),
        features: &RequestFeatures<'_>,
        row: &FeatureRow,
    ) -> LogitBelief {
        logit(&self.success, (name, shared), features, row)
    }

    /// Takes up how far out all models' lengths are.
    pub(super) fn update_tails(&mut self, shared: &SharedLevels) {
        self.lengths.update_tails(shared);
    }
}

/// Corrects the prior's prediction of a model of which no outcome was seen, by what others' outcomes say of all.
pub(super) fn adjust_unseen(
    (name, shared): (&str, Shared<'_>),
    features: &RequestFeatures<'_>,
    demand: &mut ModelDemand,
    settings: &Settings,
) {
    let own = Belief::unknown(&variances::own(prior_weight(demand, settings), settings));
    success(&own, (name, shared), (features, &features.row(demand, 1.0)), demand);
    demand.spread *= settings.spread_factor(own.outcomes);
    lengths::adjust_unseen(name, shared.levels, demand);
}

/// What is believed of a logit, by a model's own outcomes, by its family's and by all.
fn logit(
    own: &Belief,
    (name, shared): (&str, Shared<'_>),
    features: &RequestFeatures<'_>,
    row: &FeatureRow,
) -> LogitBelief {
    let mut believed = shared.success.logit(own, features, row);
    let level = shared.success.mean[LEVEL];
    let family = shared.levels.family_level(name, own.level_evidence(), level, own.level_variance());
    believed.mean[0] += own.level_pull(row) * family;
    believed
}

/// Corrects the chances and their spread, by the features of a finished thought.
fn success(
    own: &Belief,
    (name, shared): (&str, Shared<'_>),
    (features, finished): (&RequestFeatures<'_>, &FeatureRow),
    demand: &mut ModelDemand,
) {
    let believed = logit(own, (name, shared), features, finished);
    let (done, blind) = chances(own, shared.success, &believed, demand);
    // What its words may add is this request's alone: a try tells little of others by it.
    demand.spread = done * (1.0 - done) * believed.variance[0].sqrt();
    (demand.done, demand.blind) = (Chance::new(done), Chance::new(blind));
}

/// The chances after a finished thought and without any, of which only the share of the thought and the prediction differ.
fn chances(own: &Belief, shared: &SharedBelief, done: &LogitBelief, demand: &ModelDemand) -> (f64, f64) {
    let (whole, none) = (offset(demand, 1.0), offset(demand, 0.0));
    let by_share = -2.0 * own.weight(SHARE, shared);
    let by_prediction = (own_feature(none) - own_feature(whole)) * own.weight(OWN, shared);
    let shift = done.shift();
    (shifted(demand.done, whole, shift), shifted(demand.blind, none, shift + by_share + by_prediction))
}

/// A chance whose logit is so much more. What is beyond all logits that are told apart stays where nothing moves it.
fn shifted(chance: Chance, logit: f64, shift: f64) -> f64 {
    (chance.get() + logistic(logit + shift) - logistic(logit)).clamp(0.0, 1.0)
}

fn length_belief(state: &ModelState, others: Option<&ModelState>, settings: &Settings) -> LengthBelief {
    let seen = state.seen.combined_with(others.map(|other| &other.seen), settings.forget());
    LengthBelief::of(&seen.sums)
}

fn belief(prior_weight: f64, sums: &[f64], words: &WordSums, settings: &Settings) -> Belief {
    Belief::of(&variances::own(prior_weight, settings), variances::own_word(settings), sums, words)
}

fn saturation(sums: &[f64]) -> f64 {
    let &[squares, products] = sums else { return 0.0 };
    (products / (squares + 1.0 / SATURATION_VARIANCE)).clamp(-SATURATION_SHIFT_MAX, SATURATION_SHIFT_MAX)
}

/// How many outcomes a prediction counts for that is this unsure of itself. Its spread is that of a chance of a half, whatever the
/// chance is: a level is no less known where little can go wrong, or one failure there would be taken for the model's level everywhere.
pub(super) fn prior_weight(predicted: &ModelDemand, settings: &Settings) -> f64 {
    let most = settings.prior_weight.max(PRIOR_WEIGHT_MIN);
    if predicted.spread <= 0.0 {
        return most;
    }
    (PRIOR_UNIT * OUTCOME_VARIANCE / predicted.spread.powi(2)).clamp(PRIOR_WEIGHT_MIN, most)
}
