//! Collects waits for the first token, each divided by what its prompt should take, and computes their medians.

use std::time::Duration;

use tokio::time::Instant;

use crate::prefill::{Prefill, median};
use stint_types::units::Tokens;

/// A wait of which more than this share may have been our own delay is no measure of the target.
const OWN_SHARE_MAX: f64 = 0.1;
/// So many seconds more than expected are never too many.
const MARGIN: f64 = 0.05;
/// Waits that are shorter than expected by so much are believed at once.
const FASTER_RATIO: f64 = 0.9;
/// Those that are longer than expected by more change nothing of it: a target that is kept busy does not become what is
/// expected of it.
const LEARNED_RATIO_MAX: f64 = 1.2;
/// All others change it by one sample in so long a time.
const LEARNED_EVERY: Duration = Duration::from_secs(5);

/// How long one call waited for its first token.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstTokenWait {
    /// How many tokens of its prompt no cache had.
    pub(super) tokens: Tokens,
    /// When it was sent.
    pub(super) began: Instant,
    /// How many calls were under way then, itself included.
    pub(super) in_flight: u32,
    /// How long it waited.
    pub(super) waited: Duration,
    /// How much of that may have been our own delay, at most.
    pub(super) own_delay: Duration,
    /// True if a thought may have been in it that does not show.
    pub(super) hidden: bool,
}

/// A wait and how many times as long it was as it should be.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedWait {
    pub(super) wait: FirstTokenWait,
    /// `None` if it is unknown.
    pub(super) ratio: Option<f64>,
}

/// What is expected of one target's waits.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitModel {
    prefill: Prefill,
    learned_at: Option<Instant>,
}

impl FirstTokenWait {
    /// The least that the target itself took, in seconds.
    pub(super) fn upstream_seconds(&self) -> f64 {
        self.waited.saturating_sub(self.own_delay).as_secs_f64()
    }

    fn is_noisy(&self) -> bool {
        self.own_delay.as_secs_f64() > OWN_SHARE_MAX * self.waited.as_secs_f64()
    }
}

impl WaitModel {
    /// How many times as long it waited as it should have: beyond `tolerance` it waited too long. What may have been our own
    /// delay is not held against the target, and does not speak for it either.
    pub(super) fn judge(&self, wait: FirstTokenWait, tolerance: f64) -> JudgedWait {
        let expected = self.prefill.expected(wait.tokens).filter(|_| !wait.hidden);
        let ratio = expected.map(|expected| wait.upstream_seconds() / (expected + MARGIN / tolerance));
        JudgedWait { wait, ratio: ratio.filter(|ratio| *ratio > tolerance || !wait.is_noisy()) }
    }

    /// Takes waits that were as they should be, `typical` times what was expected.
    pub(super) fn learn(&mut self, window: &[JudgedWait], typical: Option<f64>, now: Instant) {
        let all = !self.prefill.is_full() || typical.is_some_and(|typical| typical < FASTER_RATIO);
        let is_close = typical.is_none_or(|typical| typical <= LEARNED_RATIO_MAX);
        let due =
            is_close && self.learned_at.is_none_or(|at| now.saturating_duration_since(at) >= LEARNED_EVERY);
        let taken = match (all, due) {
            (true, _) => window,
            (false, true) => {
                window.get(window.len() / 2..).and_then(|rest| rest.get(..1)).unwrap_or_default()
            }
            (false, false) => return,
        };
        self.learned_at = Some(now);
        self.add(taken);
    }

    /// From now on it is as these waits are: the target has become slower, or quicker, for everybody.
    pub(super) fn replace(&mut self, window: &[JudgedWait]) {
        self.prefill.clear();
        self.add(window);
    }

    /// Takes waits, whatever they were.
    pub(super) fn add(&mut self, window: &[JudgedWait]) {
        for JudgedWait { wait, .. } in
            window.iter().filter(|judged| !judged.wait.hidden && !judged.wait.is_noisy())
        {
            self.prefill.add(wait.tokens, wait.upstream_seconds());
        }
        self.prefill.fit();
    }

    /// How many times as long as this prompt a usual one should wait; 1 where that is not known.
    pub(super) fn scale(&self, tokens: Tokens) -> f64 {
        let expected = self.prefill.expected(tokens).filter(|expected| *expected > 0.0);
        expected.map_or(1.0, |expected| self.prefill.usual() / expected)
    }
}

/// The median of the known ratios.
pub(super) fn median_ratio(window: &[JudgedWait]) -> Option<f64> {
    median(window.iter().filter_map(|judged| judged.ratio).collect())
}

/// The median number of concurrent calls when they began, of the waits whose ratio is known.
pub(super) fn median_in_flight(window: &[JudgedWait]) -> Option<f64> {
    let known = window.iter().filter(|judged| judged.ratio.is_some());
    median(known.map(|judged| f64::from(judged.wait.in_flight)).collect())
}
