//! All that is believed about one model, and how one outcome changes it.

use crate::catalog::{ModelDemand, TaskClass, ThinkingStopReason};
use crate::units::{Chance, Tokens};

use super::belief::{self, Belief};
use super::demand_summary::{CLASSES, FeatureRow, class_index};
use super::lengths::{self, LengthBelief};
use super::state::ModelState;
use super::{DemandSummary, OutcomeSample, Settings};

/// Sums for the bends of all classes: for each Σ g²/v and Σ g·e/v, with e what a cut thought's outcome was beyond the
/// prediction and g how fast that prediction changes with ln bend.
pub(super) const BEND_SUMS: usize = 2 * CLASSES;
/// The variance that ln bend has beforehand.
const BEND_VARIANCE: f64 = 0.25;
/// However unsure of itself a prior is, it counts for so many outcomes.
const PRIOR_WEIGHT_MIN: f64 = 1.0;

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
    fn oldest(lesson: &OutcomeSample, believed: &ModelBelief) -> JudgementMark {
        let mut demand = lesson.predicted.clone();
        believed.adjust(&lesson.context, lesson.class, &mut demand);
        JudgementMark { at: 0.0, alarms: 0, share: thought_share(lesson, &demand), slope: 0.0 }
    }
}

/// What is believed about one model: what `adjust` reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelBelief {
    success: Belief,
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

impl ModelState {
    /// Takes in an outcome, given what was believed before it; what became of its judgement comes back.
    pub(super) fn observe(
        &mut self,
        lesson: &OutcomeSample,
        believed: &ModelBelief,
        settings: &Settings,
    ) -> Option<JudgementMark> {
        let mut demand = lesson.predicted.clone();
        believed.adjust(&lesson.context, lesson.class, &mut demand);
        self.seen.tick(1.0, settings.forget());
        lengths::add(&mut self.seen.sums, lesson, &demand);
        self.judge(lesson, &demand, believed, settings)
    }

    /// Takes in a judgement that came later than its outcome.
    pub(super) fn observe_judgement(
        &mut self,
        lesson: &OutcomeSample,
        believed: &ModelBelief,
        settings: &Settings,
    ) -> Option<JudgementMark> {
        let mut demand = lesson.predicted.clone();
        believed.adjust(&lesson.context, lesson.class, &mut demand);
        self.judge(lesson, &demand, believed, settings)
    }

    /// Puts the judgement of a lesson in place of what was said `before`, as if it had been that from the start: by what is
    /// left of the first one, and never by more. After an alarm that is taken for nothing, and false comes back.
    pub(super) fn amend(
        &mut self,
        lesson: &OutcomeSample,
        before: Chance,
        mark: Option<JudgementMark>,
        believed: &ModelBelief,
        settings: &Settings,
    ) -> bool {
        let Some(success) = lesson.success.filter(|_| lesson.weight > 0.0) else { return false };
        let mark = mark.unwrap_or_else(|| JudgementMark::oldest(lesson, believed));
        if mark.alarms != self.alarms {
            return false;
        }
        let (row, prior) = row(lesson, mark.share);
        let left = self.judged.remaining(mark.at, settings.forget());
        let precision = left * lesson.weight / belief::variance(prior);
        let change = success.get() - before.get();
        let (sums, bends) = self.judged.sums.split_at_mut(belief::SUMS);
        belief::amend(sums, &row, change, precision);
        bends[2 * class_index(lesson.class) + 1] += precision * mark.slope * change;
        true
    }

    fn judge(
        &mut self,
        lesson: &OutcomeSample,
        demand: &ModelDemand,
        believed: &ModelBelief,
        settings: &Settings,
    ) -> Option<JudgementMark> {
        let success = lesson.success.filter(|_| lesson.weight > 0.0)?.get();
        let share = thought_share(lesson, demand);
        let (row, prior) = row(lesson, share);
        let expected = prior + believed.success.correction(&row);
        let precision = lesson.weight / belief::variance(prior);
        self.judged.tick(lesson.weight, settings.forget());
        let (sums, bends) = self.judged.sums.split_at_mut(belief::SUMS);
        belief::add(sums, &row, success - prior, precision);
        let mut slope = 0.0;
        if lesson.ended == ThinkingStopReason::Cut {
            let at = 2 * class_index(lesson.class);
            slope = add_bend(&mut bends[at..at + 2], lesson, success, demand, precision);
        }
        let mark = JudgementMark { at: self.judged.ticks(), alarms: self.alarms, share, slope };
        self.update_alarm(expected, success, lesson.alarm.min(lesson.weight), settings);
        Some(mark)
    }

    /// Page's test of both directions: when outcomes have long been worse or better than was believed, the model is
    /// another than it was.
    fn update_alarm(&mut self, expected: f64, success: f64, weight: f64, settings: &Settings) {
        let surprise = success - expected.clamp(0.0, 1.0);
        for (sum, more) in self.alarm.iter_mut().zip([-surprise, surprise]) {
            *sum = (*sum + weight * (more - settings.alarm_slack)).max(0.0);
        }
        if self.alarm.iter().any(|sum| *sum > settings.alarm) {
            self.apply_alarm(self.alarms.saturating_add(1), settings);
        }
    }

    /// Brings what was learned up to an alarm, wherever it was raised: most of what is from before it is dropped, and of how
    /// good the model is altogether all of it. Replicas that raise one before they hear of each other's give it the same
    /// number, and so it counts once.
    pub(super) fn apply_alarm(&mut self, alarms: u32, settings: &Settings) {
        if alarms <= self.alarms {
            return;
        }
        self.judged.scale_down(settings.kept_after_alarms(alarms - self.alarms));
        belief::forget_level(&mut self.judged.sums[..belief::SUMS]);
        (self.alarms, self.alarm) = (alarms, [0.0; 2]);
    }
}

/// The features of an outcome with that share of its thought, and what the prior predicted of it.
fn row(lesson: &OutcomeSample, share: f64) -> (FeatureRow, f64) {
    let predicted = &lesson.predicted;
    let (blind, done) = (predicted.blind.get(), predicted.done.get());
    (lesson.context.row(lesson.class, predicted, share), blind + (done - blind) * share)
}

/// How much of its thought an answer had, as the success of an answer counts it.
fn thought_share(lesson: &OutcomeSample, demand: &ModelDemand) -> f64 {
    match lesson.ended {
        ThinkingStopReason::Closed | ThinkingStopReason::Stopped => 1.0,
        ThinkingStopReason::Cut => finished_share(lesson, demand).powf(demand.bend),
        ThinkingStopReason::None => 0.0,
    }
}

/// How much of a cut thought there was, as far as one can tell.
fn finished_share(lesson: &OutcomeSample, demand: &ModelDemand) -> f64 {
    let length = lesson.thinking.max(Tokens(1)).as_f64();
    (length / demand.thinking.mean_beyond(length).max(1.0)).clamp(0.0, 1.0)
}

/// Says by which slope it went in.
fn add_bend(
    sums: &mut [f64],
    lesson: &OutcomeSample,
    success: f64,
    demand: &ModelDemand,
    precision: f64,
) -> f64 {
    let whole = finished_share(lesson, demand).clamp(1e-6, 1.0);
    let predicted = lesson.predicted.bend;
    let (blind, gap) = (demand.blind.get(), demand.done.get() - demand.blind.get());
    let slope = gap * predicted * whole.ln() * whole.powf(predicted);
    let surprise = success - blind - gap * whole.powf(predicted);
    sums[0] += precision * slope * slope;
    sums[1] += precision * slope * surprise;
    slope
}
