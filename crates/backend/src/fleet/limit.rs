//! The concurrency limit of a target: how many calls it gets at once.
//!
//! The limit falls if the target refuses calls for lack of room. A target that never refuses, such as one's own server, is
//! judged by its wait for the first token: the wait is compared with what this prompt should take, without our own delays.
//! While the wait is as expected and the places are used, the limit rises slowly. If the wait is too long, a
//! [trial](super::trial) finds out whether the target is full; only then the limit falls at once. It never falls below the
//! number of calls that were served well in the last minute.

use std::time::Duration;

use tokio::time::Instant;

use super::peak_served::PeakServed;
use super::trial::{CapacityTrial, CapacityVerdict, WAITS_MIN};
use super::waits::{FirstTokenWait, JudgedWait, WaitModel, median_in_flight, median_ratio};

/// How many calls a target takes at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConcurrencySettings {
    /// Never fewer.
    pub min: u32,
    /// To begin with.
    pub start: u32,
    /// Never more.
    pub max: u32,
    /// So many times the expected wait for the first token is still good.
    pub tolerance: f64,
    /// What lowers it.
    pub signal: OverloadSignal,
}

/// The signal that a target has too many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverloadSignal {
    /// Its refusals, and waits that grow with the calls under way.
    Waits,
    /// Only its refusals: 429, 503 and a rate limit with nothing left.
    Refusals,
}

impl OverloadSignal {
    /// The word in metrics and in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            OverloadSignal::Waits => "waits",
            OverloadSignal::Refusals => "refusals",
        }
    }
}

impl Default for ConcurrencySettings {
    fn default() -> ConcurrencySettings {
        ConcurrencySettings { min: 4, start: 1024, max: 4096, tolerance: 2.0, signal: OverloadSignal::Waits }
    }
}

/// Measurements are judged together, for so long at least and so many.
const JUDGED_EVERY: Duration = Duration::from_millis(500);
const SAMPLES_MIN: usize = 5;
/// Or after so long, however few.
const JUDGED_ANYWAY: Duration = Duration::from_secs(2);
/// More are not kept.
const SAMPLES_MAX: usize = 256;
/// The share of the limit that is kept after the target reports that it has no room.
const REFUSAL_FACTOR: f64 = 0.8;
/// The share that is kept at least, however few calls were under way then.
const KEPT_MIN: f64 = 0.25;
/// With so many of the calls the first trial is made.
const TRIAL_SHARE: f64 = 0.75;
/// One after a target was found full may leave fewer.
const TRIAL_SHARE_MIN: f64 = 0.5;
/// A trial that leaves more shows nothing.
const TRIAL_SHARE_MAX: f64 = 0.9;
/// If this share of the places is taken, they count as all taken.
const SATURATED_SHARE: f64 = 0.95;
/// How long there is no other trial after one that did not find a target full: doubled each time.
const PAUSE_MIN: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// One target's limit.
#[derive(Debug, Clone)]
pub(super) struct ConcurrencyLimit {
    settings: ConcurrencySettings,
    permits: f64,
    waits: WaitModel,
    window: Vec<JudgedWait>,
    began: Option<Instant>,
    peak_in_flight: u32,
    last_refusal: Option<Instant>,
    peak_served: PeakServed,
    trial: Option<CapacityTrial>,
    /// With what share of the calls the next trial is made, and from when on.
    next_trial: (f64, Option<Instant>),
    trial_backoff: Duration,
    drops: LimitDrops,
}

/// How often a limit fell, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LimitDrops {
    pub(super) waits: u64,
    pub(super) refusals: u64,
}

impl ConcurrencyLimit {
    pub(super) fn new(settings: ConcurrencySettings) -> ConcurrencyLimit {
        let places = f64::from(settings.start.clamp(settings.min, settings.max));
        ConcurrencyLimit {
            settings,
            permits: places,
            waits: WaitModel::default(),
            window: Vec::new(),
            began: None,
            peak_in_flight: 0,
            last_refusal: None,
            peak_served: PeakServed::default(),
            trial: None,
            next_trial: (TRIAL_SHARE, None),
            trial_backoff: PAUSE_MIN,
            drops: LimitDrops::default(),
        }
    }

    /// From now on it stays within these bounds. What was found out stays.
    pub(super) fn reconfigure(&mut self, settings: ConcurrencySettings) {
        self.settings = settings;
        self.permits = self.permits.clamp(f64::from(settings.min), f64::from(settings.max));
    }

    /// How many calls there may be at once.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between the settings' bounds"
    )]
    pub(super) fn permits(&self) -> u32 {
        self.trial.as_ref().map_or(self.permits, |trial| trial.permits().min(self.permits)) as u32
    }

    /// What is expected of its waits.
    pub(super) fn waits(&self) -> &WaitModel {
        &self.waits
    }

    /// How often it fell since this was last asked.
    pub(super) fn take_drops(&mut self) -> LimitDrops {
        std::mem::take(&mut self.drops)
    }

    /// A call got its first token, while so many were under way.
    pub(super) fn record_wait(&mut self, wait: FirstTokenWait, in_flight: u32, now: Instant) {
        let judged = self.waits.judge(wait, self.settings.tolerance);
        self.record(judged, in_flight, now);
    }

    /// A call was dropped that had waited so long in vain. The wait counts if it is too long already.
    pub(super) fn record_abandoned_wait(&mut self, wait: FirstTokenWait, in_flight: u32, now: Instant) {
        let judged = self.waits.judge(wait, self.settings.tolerance);
        if judged.ratio.is_some_and(|ratio| ratio > self.settings.tolerance) {
            self.record(judged, in_flight, now);
        }
    }

    fn record(&mut self, judged: JudgedWait, in_flight: u32, now: Instant) {
        self.expire_trial(now);
        if let Some(trial) = &mut self.trial {
            if let Some(verdict) = trial.record(judged, self.settings.tolerance) {
                self.conclude_trial(verdict, now);
            }
            return;
        }
        let began = *self.began.get_or_insert(now);
        self.peak_in_flight = self.peak_in_flight.max(in_flight);
        if self.window.len() < SAMPLES_MAX {
            self.window.push(judged);
        }
        let age = now.saturating_duration_since(began);
        if (age >= JUDGED_EVERY && self.window.len() >= SAMPLES_MIN) || age >= JUDGED_ANYWAY {
            self.evaluate_window(now);
        }
    }

    /// The target reported that it has no room while so many calls were under way, this one included. This counts only once in a
    /// while, since many calls report it at once.
    pub(super) fn record_refusal(&mut self, in_flight: u32, now: Instant) {
        self.trial = None;
        if self.last_refusal.is_some_and(|at| now.saturating_duration_since(at) < JUDGED_EVERY) {
            return;
        }
        self.last_refusal = Some(now);
        let before = self.permits;
        // Places that were not taken show nothing of its room; but neither does one refusal among few calls.
        let taken = self.permits.min(f64::from(in_flight));
        let kept = (taken * REFUSAL_FACTOR).max(self.permits * KEPT_MIN);
        self.permits = kept.max(f64::from(self.settings.min));
        self.drops.refusals += u64::from(self.permits < before);
    }

    /// Ends a trial whose time is over.
    pub(super) fn expire_trial(&mut self, now: Instant) {
        if self.trial.as_ref().is_some_and(|trial| trial.is_over(now)) {
            self.abandon_trial(now);
        }
    }

    /// Ends a trial for whose sake alone a request finds no place. True if there was one.
    pub(super) fn cancel_blocking_trial(&mut self, now: Instant) -> bool {
        let stands_in_the_way = self.trial.as_ref().is_some_and(CapacityTrial::withholds_permits);
        if stands_in_the_way {
            self.abandon_trial(now);
        }
        stands_in_the_way
    }

    fn abandon_trial(&mut self, now: Instant) {
        self.trial = None;
        self.back_off_trials(now);
    }

    fn back_off_trials(&mut self, now: Instant) {
        self.next_trial = (TRIAL_SHARE, Some(now + self.trial_backoff));
        self.trial_backoff = (self.trial_backoff * 2).min(PAUSE_MAX);
    }

    fn evaluate_window(&mut self, now: Instant) {
        let window = std::mem::take(&mut self.window);
        let busiest = std::mem::take(&mut self.peak_in_flight);
        self.began = None;
        let too_long = |typical: &f64| *typical > self.settings.tolerance;
        match (self.settings.signal, median_ratio(&window)) {
            (OverloadSignal::Refusals, _) => self.waits.add(&window),
            (OverloadSignal::Waits, Some(typical)) if too_long(&typical) => {
                return self.start_trial(window, busiest, now);
            }
            (OverloadSignal::Waits, typical) => self.record_good_window(&window, typical, now),
        }
        if f64::from(busiest) >= self.permits / 2.0 {
            self.permits = (self.permits + self.permits.sqrt()).min(f64::from(self.settings.max));
        }
    }

    fn record_good_window(&mut self, window: &[JudgedWait], typical: Option<f64>, now: Instant) {
        self.waits.learn(window, typical, now);
        if let Some(calls) = median_in_flight(window) {
            self.peak_served.record(calls, now);
            self.next_trial.0 = TRIAL_SHARE;
        }
    }

    /// Calls wait too long: fewer are tried, but no fewer than were served well.
    fn start_trial(&mut self, mut window: Vec<JudgedWait>, busiest: u32, now: Instant) {
        let (share, from) = self.next_trial;
        if from.is_some_and(|from| now < from) {
            return;
        }
        let calls = median_in_flight(&window).unwrap_or_default();
        let least = self.peak_served.peak(now).max(f64::from(self.settings.min));
        let places = (calls * share).floor().max(least);
        if places > calls * TRIAL_SHARE_MAX {
            return;
        }
        window.retain(|judged| judged.ratio.is_some());
        if window.len() < WAITS_MIN {
            // More of them are waited for.
            self.window = window;
            return;
        }
        let was_full_up = f64::from(busiest) >= self.permits * SATURATED_SHARE;
        self.trial = Some(CapacityTrial::start(places, window, was_full_up, now));
    }

    fn conclude_trial(&mut self, verdict: CapacityVerdict, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        match verdict {
            CapacityVerdict::Full => {
                self.permits = self.permits.min(trial.permits());
                self.drops.waits += 1;
                let too_long = trial.median_ratio().map_or(1.0, |typical| self.settings.tolerance / typical);
                self.next_trial = (too_long.clamp(TRIAL_SHARE_MIN, TRIAL_SHARE), None);
                self.trial_backoff = PAUSE_MIN;
            }
            CapacityVerdict::Slow => {
                self.waits.replace(&trial.into_waits());
                self.back_off_trials(now);
            }
            CapacityVerdict::Unclear => self.back_off_trials(now),
        }
    }
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
