//! What comes in a second, from two moments.

use super::snapshot::Counters;

/// What came in each second between two snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CounterRates {
    pub(super) requests: f64,
    pub(super) refused: f64,
    pub(super) thinking: f64,
    pub(super) solution: f64,
    /// In an hour.
    pub(super) usd: f64,
}

impl CounterRates {
    /// Nothing where no time passed between them, or another process began.
    #[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
    pub(super) fn between(before: &Counters, now: &Counters) -> Option<CounterRates> {
        let seconds = now.at.checked_sub(before.at).filter(|millis| *millis > 0)? as f64 / 1000.0;
        let rate = |before: u64, now: u64| Some(now.checked_sub(before)? as f64 / seconds);
        Some(CounterRates {
            requests: rate(before.requests, now.requests)?,
            refused: rate(before.refused, now.refused)?,
            thinking: rate(before.thinking, now.thinking)?,
            solution: rate(before.solution, now.solution)?,
            usd: (now.usd - before.usd).max(0.0) / seconds * 3600.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_by_the_second_and_a_restart_has_none() {
        let before = Counters { at: 1_000, requests: 10, thinking: 100, usd: 1.0, ..Counters::default() };
        let now = Counters { at: 3_000, requests: 14, thinking: 300, usd: 1.5, ..Counters::default() };
        let rates = CounterRates::between(&before, &now).unwrap();
        assert_eq!((rates.requests, rates.thinking, rates.usd), (2.0, 100.0, 900.0));
        assert_eq!(CounterRates::between(&now, &now), None, "no time");
        let began_anew = Counters { at: 4_000, ..Counters::default() };
        assert_eq!(CounterRates::between(&now, &began_anew), None);
    }
}
