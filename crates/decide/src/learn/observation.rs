//! How one outcome, or a judgement of one, changes what was learned about its model.

use stint_types::catalog::{ModelDemand, ThinkingStopReason};
use stint_types::units::{Chance, Tokens};

use super::belief;
use super::demand_summary::{FeatureRow, class_index};
use super::lengths;
use super::model_belief::ModelBelief;
use super::model_state::ModelState;
use super::outcome_sample::OutcomeSample;
use super::settings::Settings;

/// How and when a judgement went into the sums, for who takes it back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgementMark {
    /// The clock of what was judged, just after.
    at: f64,
    /// The last alarm that was heeded by then.
    alarms: u32,
    /// How much of its thought the answer was taken to have had.
    share: f64,
    /// How fast its prediction changes with ln bend; zero where the thought was not cut.
    slope: f64,
}

impl JudgementMark {
    /// For a judgement of which nobody knows when it came: as if it were the first of all, so that no more is taken back
    /// than can be left of it.
    fn oldest(sample: &OutcomeSample, believed: &ModelBelief) -> JudgementMark {
        let mut demand = sample.predicted.clone();
        believed.adjust(&sample.context, sample.class, &mut demand);
        JudgementMark { at: 0.0, alarms: 0, share: thought_share(sample, &demand), slope: 0.0 }
    }
}

/// Takes in an outcome, given what was believed before it; what became of its judgement comes back.
pub(super) fn observe(
    state: &mut ModelState,
    sample: &OutcomeSample,
    believed: &ModelBelief,
    settings: &Settings,
) -> Option<JudgementMark> {
    let mut demand = sample.predicted.clone();
    believed.adjust(&sample.context, sample.class, &mut demand);
    state.seen.tick(1.0, settings.forget());
    lengths::add(&mut state.seen.sums, sample, &demand);
    judge(state, sample, &demand, believed, settings)
}

/// Takes in a judgement that came later than its outcome.
pub(super) fn observe_judgement(
    state: &mut ModelState,
    sample: &OutcomeSample,
    believed: &ModelBelief,
    settings: &Settings,
) -> Option<JudgementMark> {
    let mut demand = sample.predicted.clone();
    believed.adjust(&sample.context, sample.class, &mut demand);
    judge(state, sample, &demand, believed, settings)
}

/// Replaces the judgement `before` of a sample by its present one. The new judgement has the weight that is left of the
/// first one, and never more. If there was an alarm since then, nothing is left: nothing changes, and the result is false.
pub(super) fn amend(
    state: &mut ModelState,
    sample: &OutcomeSample,
    before: Chance,
    mark: Option<JudgementMark>,
    believed: &ModelBelief,
    settings: &Settings,
) -> bool {
    let Some(success) = sample.success.filter(|_| sample.weight > 0.0) else { return false };
    let mark = mark.unwrap_or_else(|| JudgementMark::oldest(sample, believed));
    if mark.alarms != state.alarms {
        return false;
    }
    let (row, prior) = row(sample, mark.share);
    let left = state.judged.remaining(mark.at, settings.forget());
    let precision = left * sample.weight / belief::variance(prior);
    let change = success.get() - before.get();
    let (sums, bends) = state.judged.sums.split_at_mut(belief::SUMS);
    belief::amend(sums, &row, change, precision);
    bends[2 * class_index(sample.class) + 1] += precision * mark.slope * change;
    true
}

fn judge(
    state: &mut ModelState,
    sample: &OutcomeSample,
    demand: &ModelDemand,
    believed: &ModelBelief,
    settings: &Settings,
) -> Option<JudgementMark> {
    let success = sample.success.filter(|_| sample.weight > 0.0)?.get();
    let share = thought_share(sample, demand);
    let (row, prior) = row(sample, share);
    let expected = prior + believed.success.correction(&row);
    let precision = sample.weight / belief::variance(prior);
    state.judged.tick(sample.weight, settings.forget());
    let (sums, bends) = state.judged.sums.split_at_mut(belief::SUMS);
    belief::add(sums, &row, success - prior, precision);
    let mut slope = 0.0;
    if sample.ended == ThinkingStopReason::Cut {
        let at = 2 * class_index(sample.class);
        slope = add_bend(&mut bends[at..at + 2], sample, success, demand, precision);
    }
    let mark = JudgementMark { at: state.judged.ticks(), alarms: state.alarms, share, slope };
    state.update_alarm(expected, success, sample.alarm.min(sample.weight), settings);
    Some(mark)
}

/// The features of an outcome with that share of its thought, and what the prior predicted of it.
fn row(sample: &OutcomeSample, share: f64) -> (FeatureRow, f64) {
    let predicted = &sample.predicted;
    let (blind, done) = (predicted.blind.get(), predicted.done.get());
    (sample.context.row(sample.class, predicted, share), blind + (done - blind) * share)
}

/// How much of its thought an answer had, as the success of an answer counts it.
fn thought_share(sample: &OutcomeSample, demand: &ModelDemand) -> f64 {
    match sample.ended {
        ThinkingStopReason::Closed | ThinkingStopReason::Stopped => 1.0,
        ThinkingStopReason::Cut => finished_share(sample, demand).powf(demand.bend),
        ThinkingStopReason::None => 0.0,
    }
}

/// How much of a cut thought there was, as far as one can tell.
fn finished_share(sample: &OutcomeSample, demand: &ModelDemand) -> f64 {
    let length = sample.thinking.max(Tokens(1)).as_f64();
    (length / demand.thinking.mean_beyond(length).max(1.0)).clamp(0.0, 1.0)
}

/// Says by which slope it went in.
fn add_bend(
    sums: &mut [f64],
    sample: &OutcomeSample,
    success: f64,
    demand: &ModelDemand,
    precision: f64,
) -> f64 {
    let whole = finished_share(sample, demand).clamp(1e-6, 1.0);
    let predicted = sample.predicted.bend;
    let (blind, gap) = (demand.blind.get(), demand.done.get() - demand.blind.get());
    let slope = gap * predicted * whole.ln() * whole.powf(predicted);
    let surprise = success - blind - gap * whole.powf(predicted);
    sums[0] += precision * slope * slope;
    sums[1] += precision * slope * surprise;
    slope
}
