//! How many calls a target takes at once.
//!
//! Where it says that it has no room there are fewer. Where it never says so, as one's own servers, that is found out by the
//! wait for the first token: judged against what this prompt should take, without our own delays. While that is as it should
//! be and the places are used, there are more of them by and by. Where it is too long, a [trial](super::trial) finds out
//! whether the target is full, for only then there are fewer at once; and never fewer than were served well in the last minute.

use std::time::Duration;

use tokio::time::Instant;

use super::served::Served;
use super::trial::{Trial, Verdict, WAITS_MIN};
use super::waits::{Judged, Wait, Waits, load, typical};

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
    pub signal: Signal,
}

/// What tells that a target has too many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Its refusals, and waits that grow with the calls under way.
    Waits,
    /// Only its refusals: 429, 503 and a rate limit with nothing left.
    Refusals,
}

impl Signal {
    /// The word in metrics and in configuration.
    pub fn word(self) -> &'static str {
        match self {
            Signal::Waits => "waits",
            Signal::Refusals => "refusals",
        }
    }
}

impl Default for ConcurrencySettings {
    fn default() -> ConcurrencySettings {
        ConcurrencySettings { min: 4, start: 1024, max: 4096, tolerance: 2.0, signal: Signal::Waits }
    }
}

/// Measurements are judged together, for so long at least and so many.
const JUDGED_EVERY: Duration = Duration::from_millis(500);
const SAMPLES_MIN: usize = 5;
/// Or after so long, however few.
const JUDGED_ANYWAY: Duration = Duration::from_secs(2);
/// More are not kept.
const SAMPLES_MAX: usize = 256;
/// What is left where the target says itself that it has no room.
const REFUSED: f64 = 0.8;
/// With so many of the calls the first trial is made.
const TRIED: f64 = 0.75;
/// One after a target was found full may leave fewer.
const TRIED_MIN: f64 = 0.5;
/// A trial that leaves more shows nothing.
const TRIED_MAX: f64 = 0.9;
/// Places of which such a share is taken count as all taken.
const TAKEN: f64 = 0.95;
/// How long there is no other trial after one that did not find a target full: doubled each time.
const PAUSE_MIN: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// One target's limit.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    settings: ConcurrencySettings,
    places: f64,
    waits: Waits,
    window: Vec<Judged>,
    began: Option<Instant>,
    busiest: u32,
    refused: Option<Instant>,
    served: Served,
    trial: Option<Trial>,
    /// With what share of the calls the next trial is made, and from when on.
    next: (f64, Option<Instant>),
    pause: Duration,
    falls: Falls,
}

/// How often a limit fell, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Falls {
    pub(super) waits: u64,
    pub(super) refusals: u64,
}

impl Limit {
    pub(super) fn new(settings: ConcurrencySettings) -> Limit {
        let places = f64::from(settings.start.clamp(settings.min, settings.max));
        Limit {
            settings,
            places,
            waits: Waits::default(),
            window: Vec::new(),
            began: None,
            busiest: 0,
            refused: None,
            served: Served::default(),
            trial: None,
            next: (TRIED, None),
            pause: PAUSE_MIN,
            falls: Falls::default(),
        }
    }

    /// From now on it stays within these bounds. What was found out stays.
    pub(super) fn treat(&mut self, settings: ConcurrencySettings) {
        self.settings = settings;
        self.places = self.places.clamp(f64::from(settings.min), f64::from(settings.max));
    }

    /// How many calls there may be at once.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between the settings' bounds"
    )]
    pub(super) fn places(&self) -> u32 {
        self.trial.as_ref().map_or(self.places, |trial| trial.places().min(self.places)) as u32
    }

    /// What is expected of its waits.
    pub(super) fn waits(&self) -> &Waits {
        &self.waits
    }

    /// How often it fell since this was last asked.
    pub(super) fn falls(&mut self) -> Falls {
        std::mem::take(&mut self.falls)
    }

    /// A call got its first token, while so many were under way.
    pub(super) fn measured(&mut self, wait: Wait, in_flight: u32, now: Instant) {
        let judged = self.waits.judge(wait, self.settings.tolerance);
        self.note(judged, in_flight, now);
    }

    /// A call was let go that had waited so long in vain. That says something where it is too long already.
    pub(super) fn in_vain(&mut self, wait: Wait, in_flight: u32, now: Instant) {
        let judged = self.waits.judge(wait, self.settings.tolerance);
        if judged.ratio.is_some_and(|ratio| ratio > self.settings.tolerance) {
            self.note(judged, in_flight, now);
        }
    }

    fn note(&mut self, judged: Judged, in_flight: u32, now: Instant) {
        self.expire(now);
        if let Some(trial) = &mut self.trial {
            if let Some(verdict) = trial.note(judged, self.settings.tolerance) {
                self.conclude(verdict, now);
            }
            return;
        }
        let began = *self.began.get_or_insert(now);
        self.busiest = self.busiest.max(in_flight);
        if self.window.len() < SAMPLES_MAX {
            self.window.push(judged);
        }
        let age = now.saturating_duration_since(began);
        if (age >= JUDGED_EVERY && self.window.len() >= SAMPLES_MIN) || age >= JUDGED_ANYWAY {
            self.judge(now);
        }
    }

    /// The target said that it has no room. Believed once in a while: many say it at once.
    pub(super) fn refused(&mut self, now: Instant) {
        self.trial = None;
        if self.refused.is_some_and(|at| now.saturating_duration_since(at) < JUDGED_EVERY) {
            return;
        }
        self.refused = Some(now);
        let before = self.places;
        self.places = (self.places * REFUSED).max(f64::from(self.settings.min));
        self.falls.refusals += u64::from(self.places < before);
    }

    /// Ends a trial whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.trial.as_ref().is_some_and(|trial| trial.is_over(now)) {
            self.give_up(now);
        }
    }

    /// Ends a trial for whose sake alone a request finds no place. True where there was one.
    pub(super) fn make_way(&mut self, now: Instant) -> bool {
        let stands_in_the_way = self.trial.as_ref().is_some_and(Trial::takes_places_away);
        if stands_in_the_way {
            self.give_up(now);
        }
        stands_in_the_way
    }

    fn give_up(&mut self, now: Instant) {
        self.trial = None;
        self.wait_longer(now);
    }

    fn wait_longer(&mut self, now: Instant) {
        self.next = (TRIED, Some(now + self.pause));
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn judge(&mut self, now: Instant) {
        let window = std::mem::take(&mut self.window);
        let busiest = std::mem::take(&mut self.busiest);
        self.began = None;
        let too_long = |typical: &f64| *typical > self.settings.tolerance;
        match (self.settings.signal, typical(&window)) {
            (Signal::Refusals, _) => self.waits.take(&window),
            (Signal::Waits, Some(typical)) if too_long(&typical) => return self.doubt(window, busiest, now),
            (Signal::Waits, typical) => self.does_well(&window, typical, now),
        }
        if f64::from(busiest) >= self.places / 2.0 {
            self.places = (self.places + self.places.sqrt()).min(f64::from(self.settings.max));
        }
    }

    fn does_well(&mut self, window: &[Judged], typical: Option<f64>, now: Instant) {
        self.waits.learn(window, typical, now);
        if let Some(calls) = load(window) {
            self.served.note(calls, now);
            self.next.0 = TRIED;
        }
    }

    /// Calls wait too long: fewer are tried, but no fewer than were served well.
    fn doubt(&mut self, mut window: Vec<Judged>, busiest: u32, now: Instant) {
        let (share, from) = self.next;
        if from.is_some_and(|from| now < from) {
            return;
        }
        let calls = load(&window).unwrap_or_default();
        let least = self.served.most(now).max(f64::from(self.settings.min));
        let places = (calls * share).floor().max(least);
        if places > calls * TRIED_MAX {
            return;
        }
        window.retain(|judged| judged.ratio.is_some());
        if window.len() < WAITS_MIN {
            // More of them are waited for.
            self.window = window;
            return;
        }
        let was_full_up = f64::from(busiest) >= self.places * TAKEN;
        self.trial = Some(Trial::begin(places, window, was_full_up, now));
    }

    fn conclude(&mut self, verdict: Verdict, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        match verdict {
            Verdict::Full => {
                self.places = self.places.min(trial.places());
                self.falls.waits += 1;
                let too_long = trial.typical().map_or(1.0, |typical| self.settings.tolerance / typical);
                self.next = (too_long.clamp(TRIED_MIN, TRIED), None);
                self.pause = PAUSE_MIN;
            }
            Verdict::Slow => {
                self.waits.replace(&trial.into_waits());
                self.wait_longer(now);
            }
            Verdict::Unclear => self.wait_longer(now),
        }
    }
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
