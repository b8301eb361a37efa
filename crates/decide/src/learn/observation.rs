//! How one outcome, or a judgement of one, changes what was learned about its model.

use stint_types::catalog::{ModelDemand, ThinkingStopReason};
use stint_types::units::Chance;

use super::evidence::{self, LogitObservation};
use super::features::{FeatureRow, RequestFeatures, class_index, logistic, offset};
use super::lengths::{self, LengthOutcome};
use super::model_belief::{ModelBelief, Shared};
use super::model_state::ModelState;
use super::outcome_sample::OutcomeSample;
use super::settings::Settings;

/// What was believed before an outcome: of its model, and of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beliefs<'a> {
    pub model: &'a ModelBelief,
    pub shared: Shared<'a>,
}

/// How and when a judgement went into the sums, for who takes it back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgementMark {
    /// The clock of what was judged, just after.
    at: f64,
    /// The last alarm that was heeded by then.
    alarms: u32,
    /// How much of its thought the answer was taken to have had.
    share: f64,
    /// How much of its surprise went to its features, and how much to its words.
    parts: [f64; 2],
    /// How fast its prediction changes with ln saturation; zero where the thought was not cut.
    slope: f64,
}

impl JudgementMark {
    /// For a judgement of which nobody knows when it came: as if it were the first of all, so that no more is taken back
    /// than can be left of it.
    fn oldest(sample: &OutcomeSample, beliefs: Beliefs<'_>) -> JudgementMark {
        let demand = beliefs.demand(sample);
        let share = thought_share(sample, &demand);
        let view = OutcomeView::of(sample, share, beliefs);
        JudgementMark { at: 0.0, alarms: 0, share, parts: view.parts(), slope: 0.0 }
    }
}

impl Beliefs<'_> {
    /// What was believed of the lengths of an outcome's thought and answer; of its success it has what was predicted.
    fn lengths(self, outcome: &LengthOutcome<'_>) -> ModelDemand {
        let (sample, mut demand) = (outcome.sample, outcome.sample.predicted.clone());
        let (levels, request) = (self.shared.levels, (&outcome.features, &outcome.row));
        self.model.lengths().adjust(&sample.model, levels, class_index(sample.class), request, &mut demand);
        demand
    }

    /// What was believed of a sample's request.
    fn demand(self, sample: &OutcomeSample) -> ModelDemand {
        let mut demand = sample.predicted.clone();
        let features = RequestFeatures::of(sample.class, &sample.request);
        self.model.adjust((&sample.model, self.shared), &features, class_index(sample.class), &mut demand);
        demand
    }
}

/// An outcome as the beliefs before it saw it.
struct OutcomeView<'a> {
    features: RequestFeatures<'a>,
    row: FeatureRow,
    /// The chance of success, with that share of its thought.
    expected: f64,
    /// What the features and the words say the logit is beyond the prior's, and how unsure they are.
    mean: f64,
    variance: [f64; 2],
    /// How precisely the outcome tells the logit.
    precision: f64,
}

impl<'a> OutcomeView<'a> {
    fn of(sample: &'a OutcomeSample, share: f64, beliefs: Beliefs<'_>) -> OutcomeView<'a> {
        /// However sure an outcome was foretold, it tells so much.
        const PRECISION_MIN: f64 = 0.02;
        let features = RequestFeatures::of(sample.class, &sample.request);
        let row = features.row(&sample.predicted, share);
        let believed = beliefs.model.logit((&sample.model, beliefs.shared), &features, &row);
        let expected = logistic(offset(&sample.predicted, share) + believed.shift());
        let precision = sample.weight * (expected * (1.0 - expected)).max(PRECISION_MIN);
        OutcomeView {
            features,
            row,
            expected,
            mean: believed.mean[0],
            variance: believed.variance,
            precision,
        }
    }

    /// How much of a surprise goes to the features, and how much to the words: what is left beside what the others may be off.
    fn parts(&self) -> [f64; 2] {
        let [by_features, by_words] = self.variance;
        [by_words, by_features + by_words].map(|others| 1.0 / (1.0 + self.precision * others))
    }

    /// Adds it to what was learned.
    fn add(&self, state: &mut ModelState, surprise: f64, beliefs: Beliefs<'_>) {
        let [to_features, to_words] = self.parts();
        let observation = |part: f64, mean: f64| {
            let precision = part * self.precision;
            LogitObservation { precision, product: precision * mean + part * surprise }
        };
        evidence::add(
            &mut state.judged.sums[..evidence::SUMS],
            &self.row,
            observation(to_features, self.mean),
        );
        let value = self.features.word;
        for place in self.features.places() {
            let (mean, _) = beliefs.shared.success.word(&beliefs.model.success, place);
            evidence::add_word(&mut state.judged.words, place, value, observation(to_words, value * mean));
        }
    }
}

/// Takes in an outcome, given what was believed before it; what became of its judgement comes back. `weight` is what it tells of
/// requests like it.
pub(super) fn observe(
    state: &mut ModelState,
    (sample, weight): (&OutcomeSample, f64),
    beliefs: Beliefs<'_>,
    settings: &Settings,
) -> Option<JudgementMark> {
    let outcome = LengthOutcome::of(sample, weight);
    let demand = beliefs.lengths(&outcome);
    state.seen.tick(1.0, settings.forget());
    lengths::add(&mut state.seen.sums, &outcome, beliefs.model.lengths(), &demand);
    observe_judgement(state, sample, beliefs, settings)
}

/// Takes in the judgement of an outcome; most have none.
pub(super) fn observe_judgement(
    state: &mut ModelState,
    sample: &OutcomeSample,
    beliefs: Beliefs<'_>,
    settings: &Settings,
) -> Option<JudgementMark> {
    let success = sample.success.filter(|_| sample.weight > 0.0)?.get();
    let demand = beliefs.demand(sample);
    let share = thought_share(sample, &demand);
    let view = OutcomeView::of(sample, share, beliefs);
    state.judged.tick(sample.weight, settings.forget());
    view.add(state, sample.weight * (success - view.expected), beliefs);
    let mut slope = 0.0;
    if sample.ended == ThinkingStopReason::Cut {
        let at = evidence::SUMS + 2 * class_index(sample.class);
        let precision = cut_precision(sample.weight, sample, share);
        slope = add_saturation(&mut state.judged.sums[at..at + 2], sample, success, &demand, precision);
    }
    let (at, alarms) = (state.judged.ticks(), state.alarms);
    let mark = JudgementMark { at, alarms, share, parts: view.parts(), slope };
    state.update_alarm(view.expected, success, sample.alarm.min(sample.weight), settings);
    Some(mark)
}

/// Replaces the judgement `before` of a sample by its present one. The new judgement has the weight that is left of the
/// first one, and never more. If there was an alarm since then, nothing is left: nothing changes, and the result is false.
pub(super) fn amend(
    state: &mut ModelState,
    sample: &OutcomeSample,
    before: Chance,
    mark: Option<JudgementMark>,
    beliefs: Beliefs<'_>,
    settings: &Settings,
) -> bool {
    let Some(success) = sample.success.filter(|_| sample.weight > 0.0) else { return false };
    let mark = mark.unwrap_or_else(|| JudgementMark::oldest(sample, beliefs));
    if mark.alarms != state.alarms {
        return false;
    }
    let features = RequestFeatures::of(sample.class, &sample.request);
    let row = features.row(&sample.predicted, mark.share);
    let left = state.judged.remaining(mark.at, settings.forget()) * sample.weight;
    let change = left * (success.get() - before.get());
    let [to_features, to_words] = mark.parts;
    let (sums, saturations) = state.judged.sums.split_at_mut(evidence::SUMS);
    evidence::amend(sums, &row, change * to_features);
    for place in features.places() {
        let observation = LogitObservation { precision: 0.0, product: change * to_words };
        evidence::add_word(&mut state.judged.words, place, features.word, observation);
    }
    saturations[2 * class_index(sample.class) + 1] +=
        cut_precision(1.0, sample, mark.share) * change * mark.slope;
    true
}

/// How much of its thought an answer had, as the success of an answer counts it.
fn thought_share(sample: &OutcomeSample, demand: &ModelDemand) -> f64 {
    match sample.ended {
        // A word for less asks for a part of the thought, which ends by itself.
        ThinkingStopReason::Closed | ThinkingStopReason::Stopped if sample.effort < 1.0 => {
            demand.rise(sample.effort.max(0.0))
        }
        ThinkingStopReason::Closed | ThinkingStopReason::Stopped => 1.0,
        ThinkingStopReason::Cut => demand.rise(finished_share(sample, demand)),
        ThinkingStopReason::None => 0.0,
    }
}

/// How much of a cut thought there was, as far as one can tell.
fn finished_share(sample: &OutcomeSample, demand: &ModelDemand) -> f64 {
    let length = sample.usual_thinking().max(1.0);
    (sample.effort * length / demand.thinking.mean_beyond(length).max(1.0)).clamp(0.0, 1.0)
}

/// How precisely an outcome with that share of its thought tells a chance.
fn cut_precision(weight: f64, sample: &OutcomeSample, share: f64) -> f64 {
    const VARIANCE_MIN: f64 = 0.09;
    let chance = logistic(offset(&sample.predicted, share));
    weight / (chance * (1.0 - chance)).max(VARIANCE_MIN)
}

/// Says by which slope it went in.
fn add_saturation(
    sums: &mut [f64],
    sample: &OutcomeSample,
    success: f64,
    demand: &ModelDemand,
    precision: f64,
) -> f64 {
    let share = finished_share(sample, demand);
    let (blind, gap) = (demand.blind.get(), demand.done.get() - demand.blind.get());
    let slope = gap * sample.predicted.rise_by_saturation(share);
    let surprise = success - blind - gap * sample.predicted.rise(share);
    sums[0] += precision * slope * slope;
    sums[1] += precision * slope * surprise;
    slope
}
