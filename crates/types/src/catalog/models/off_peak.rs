//! Prices that depend on the hour: some providers take less outside the hours of their peak.

use std::time::Duration;

use crate::units::{Money, Price, Timestamp};

const HOUR: Duration = Duration::from_secs(3600);

/// The hours of a week.
const WEEK: u32 = 7 * 24;

/// What a provider takes outside the hours of its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffPeak {
    /// What it takes then, in hundredths of its usual prices.
    pub percent: u8,
    /// The hours of the peak, in UTC: a bit for each, the lowest for the one that begins at midnight.
    pub peak_hours: u32,
    /// True if Saturdays and Sundays have no peak.
    pub weekends: bool,
}

impl OffPeak {
    /// A price as it is then, rounded up.
    pub(super) fn price(&self, usual: Price) -> Price {
        let exact = (u128::from(usual.per_million_tokens.0) * u128::from(self.percent)).div_ceil(100);
        Price { per_million_tokens: Money(u64::try_from(exact).unwrap_or(u64::MAX)) }
    }

    /// True if no hour between two moments is one of the peak.
    pub(super) fn holds(&self, from: Timestamp, until: Timestamp) -> bool {
        let hours = (0..WEEK).map(|hours| from + HOUR * hours).take_while(|at| *at <= until);
        !hours.chain([until]).any(|at| self.is_peak(at))
    }

    fn is_peak(&self, at: Timestamp) -> bool {
        let hours = at.as_seconds().div_euclid(3600);
        // 1970 began on a Thursday; Monday is the first.
        let (hour, day) = (hours.rem_euclid(24), (hours.div_euclid(24) + 3).rem_euclid(7));
        let is_free_day = self.weekends && day >= 5;
        !is_free_day && self.peak_hours & (1 << hour) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From one to four and from six to ten, from Monday to Friday.
    const DEEPSEEK: OffPeak = OffPeak { percent: 50, peak_hours: 0b0011_1100_1110, weekends: true };

    fn holds(from: &str, until: &str) -> bool {
        let at = |text: &str| format!("2026-11-{text}Z").parse().unwrap();
        DEEPSEEK.holds(at(from), at(until))
    }

    fn is_cheap(at: &str) -> bool {
        holds(at, at)
    }

    #[test]
    fn the_hours_of_the_peak_are_those_of_working_days_in_utc() {
        for at in ["24T01:00:00", "24T03:59:59", "24T06:00:00", "24T09:59:59", "27T09:00:00", "23T01:30:00"] {
            assert!(!is_cheap(at), "{at}");
        }
        for at in ["24T00:59:59", "24T04:00:00", "24T05:59:59", "24T10:00:00", "28T02:00:00", "29T09:59:59"] {
            assert!(is_cheap(at), "{at}");
        }
    }

    #[test]
    fn what_reaches_into_an_hour_of_the_peak_is_none_of_the_cheaper_time() {
        assert!(holds("24T04:10:00", "24T05:59:59"));
        assert!(!holds("24T05:50:00", "24T06:00:00"), "it ends in the peak");
        assert!(!holds("24T03:59:00", "24T04:30:00"), "it begins in the peak");
        assert!(!holds("24T00:30:00", "24T05:30:00"), "the peak is between");
        assert!(holds("27T10:00:00", "30T00:59:59"), "a weekend has none");
    }

    #[test]
    fn a_price_is_rounded_up() {
        let price = |per_million| Price { per_million_tokens: Money(per_million) };
        assert_eq!(DEEPSEEK.price(price(7)), price(4));
    }
}
