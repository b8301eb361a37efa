//! What was learned about one model, as plain sums: `observation` adds to them, `model_belief` reads them.

use serde::{Deserialize, Serialize};

use super::decayed_sums::DecayedSums;
use super::features::CLASSES;
use super::settings::Settings;
use super::{evidence, lengths};

/// Sums for the saturations of all classes: for each Σ g²/v and Σ g·e/v, with e what a cut thought's outcome was beyond the
/// prediction and g how fast that prediction changes with ln saturation.
pub(super) const CUT_SUMS: usize = 2 * CLASSES;

/// What was learned about one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelState {
    /// How many outcomes the prior counts for.
    pub(super) prior_weight: f64,
    /// Sums of judged outcomes: those of the belief about success, then those of the saturations.
    pub(super) judged: DecayedSums,
    /// Sums of all outcomes: lengths.
    pub(super) seen: DecayedSums,
    /// How far judgements have fallen short of what was believed, and how far they have passed it.
    pub(super) alarm: [f64; 2],
    /// The number of the last alarm that is heeded in this, wherever it was raised: one more than what was known there.
    #[serde(default)]
    pub(super) alarms: u32,
}

impl ModelState {
    /// Nothing learned yet.
    pub(super) fn new(prior_weight: f64) -> ModelState {
        ModelState {
            prior_weight,
            judged: DecayedSums::new(evidence::SUMS + CUT_SUMS),
            seen: DecayedSums::new(lengths::SUMS),
            alarm: [0.0; 2],
            alarms: 0,
        }
    }

    /// Lets what is known here fade by what the others saw meanwhile.
    pub(super) fn apply_remote_ticks(&mut self, judged: &DecayedSums, seen: &DecayedSums, forget: f64) {
        self.judged.apply_remote_ticks(judged.own_ticks(), forget);
        self.seen.apply_remote_ticks(seen.own_ticks(), forget);
    }

    pub(super) fn is_sound(&self) -> bool {
        self.prior_weight.is_finite()
            && self.prior_weight > 0.0
            && self.judged.is_sound(evidence::SUMS + CUT_SUMS)
            && self.seen.is_sound(lengths::SUMS)
            && self.alarm.iter().all(|sum| sum.is_finite())
    }

    /// Page's test of both directions: when outcomes have long been worse or better than was believed, the model is
    /// another than it was.
    pub(super) fn update_alarm(&mut self, expected: f64, success: f64, weight: f64, settings: &Settings) {
        let surprise = success - expected.clamp(0.0, 1.0);
        for (sum, more) in self.alarm.iter_mut().zip([-surprise, surprise]) {
            *sum = (*sum + weight * (more - settings.alarm_slack)).max(0.0);
        }
        if self.alarm.iter().any(|sum| *sum > settings.alarm) {
            self.apply_alarm(self.alarms.saturating_add(1), settings);
        }
    }

    /// Brings what was learned up to an alarm, wherever it was raised: most of what is from before it is dropped, and of how
    /// good the model is altogether all of it. Replicas that raise one before they learn of each other's give it the same
    /// number, and so it counts once.
    pub(super) fn apply_alarm(&mut self, alarms: u32, settings: &Settings) {
        if alarms <= self.alarms {
            return;
        }
        self.judged.scale_down(settings.kept_after_alarms(alarms - self.alarms));
        evidence::forget_level(&mut self.judged.sums[..evidence::SUMS]);
        (self.alarms, self.alarm) = (alarms, [0.0; 2]);
    }

    /// Takes over what a replica that is gone has learned.
    pub(super) fn take_over(&mut self, gone: &ModelState, settings: &Settings) {
        self.prior_weight = self.prior_weight.min(gone.prior_weight);
        let mut gone = gone.clone();
        gone.apply_alarm(self.alarms, settings);
        self.apply_alarm(gone.alarms, settings);
        self.judged.take_over(&gone.judged, settings.forget());
        self.seen.take_over(&gone.seen, settings.forget());
    }
}
