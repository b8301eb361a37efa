//! The spans of time over which limits count.

use std::fmt;
use std::time::Duration;

use jiff::{ToSpan, Unit as Calendar, Zoned};
use serde::{Deserialize, Serialize};

use super::{Timestamp, Zone};

/// A span over which spending is counted again; boundaries are those of the calendar in the account's time zone,
/// weeks start on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// A minute of the clock.
    Minute,
    /// An hour of the clock.
    Hour,
    /// A calendar day.
    Day,
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
    /// All time.
    Total,
}

impl Window {
    /// Every window, the shortest first.
    pub const ALL: [Window; 6] =
        [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];

    /// When the window that holds `now` began; for all time, the beginning of time.
    pub fn start(self, now: Timestamp, zone: &Zone) -> Timestamp {
        self.bounds(now, zone).map_or(Timestamp(i64::MIN), |(start, _)| start)
    }

    /// When the window that holds `now` ends and counting starts again; never, for all time.
    pub fn end(self, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        self.bounds(now, zone).map(|(_, end)| end)
    }

    /// How long it usually is: a month has thirty days here; all time has no end.
    pub fn length(self) -> Duration {
        const DAY: u64 = 86_400;
        Duration::from_secs(match self {
            Window::Minute => 60,
            Window::Hour => 3_600,
            Window::Day => DAY,
            Window::Week => 7 * DAY,
            Window::Month => 30 * DAY,
            Window::Total => u64::MAX,
        })
    }

    /// Where the window that holds `now` begins, and where the next one does.
    pub fn bounds(self, now: Timestamp, zone: &Zone) -> Option<(Timestamp, Timestamp)> {
        let moment = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.0.clone());
        let (start, length) = match self {
            Window::Minute => (floor(&moment, Calendar::Minute)?, 1.minute()),
            Window::Hour => (floor(&moment, Calendar::Hour)?, 1.hour()),
            Window::Day => (moment.start_of_day().ok()?, 1.day()),
            Window::Week => {
                let since_monday = i64::from(moment.weekday().to_monday_zero_offset());
                (moment.checked_sub(since_monday.days()).ok()?.start_of_day().ok()?, 1.week())
            }
            Window::Month => (moment.first_of_month().ok()?.start_of_day().ok()?, 1.month()),
            Window::Total => return None,
        };
        let end = start.checked_add(length).ok()?;
        Some((Timestamp(start.timestamp().as_millisecond()), Timestamp(end.timestamp().as_millisecond())))
    }
}

fn floor(moment: &Zoned, unit: Calendar) -> Option<Zoned> {
    moment.round(jiff::ZonedRound::new().smallest(unit).mode(jiff::RoundMode::Trunc)).ok()
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Window::Minute => "minute",
            Window::Hour => "hour",
            Window::Day => "day",
            Window::Week => "week",
            Window::Month => "month",
            Window::Total => "total",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn check(window: Window, now: &str, start: &str, end: &str) {
        check_in("UTC", window, now, start, end);
    }

    fn check_in(zone: &str, window: Window, now: &str, start: &str, end: &str) {
        let zone: Zone = zone.parse().unwrap();
        assert_eq!(window.start(at(now), &zone), at(start), "start of the {window} in {zone}");
        assert_eq!(window.end(at(now), &zone), Some(at(end)), "end of the {window} in {zone}");
    }

    #[test]
    fn windows_begin_and_end_on_the_calendar() {
        let now = "2026-11-20T20:36:41.5Z";
        check(Window::Minute, now, "2026-11-20T20:36:00Z", "2026-11-20T20:37:00Z");
        check(Window::Hour, now, "2026-11-20T20:00:00Z", "2026-11-20T21:00:00Z");
        check(Window::Day, now, "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
        check(Window::Week, now, "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
        check(Window::Month, now, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z");
    }

    #[test]
    fn a_boundary_belongs_to_the_window_that_it_opens() {
        check(Window::Month, "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
    }

    #[test]
    fn all_time_never_ends() {
        assert_eq!(Window::Total.end(at("2026-11-20T00:00:00Z"), &Zone::UTC), None);
    }

    #[test]
    fn boundaries_are_those_of_the_accounts_own_calendar() {
        let now = "2026-11-20T22:30:00Z";
        check_in("Asia/Kolkata", Window::Day, now, "2026-11-20T18:30:00Z", "2026-11-21T18:30:00Z");
        check_in("Asia/Kolkata", Window::Hour, now, "2026-11-20T22:30:00Z", "2026-11-20T23:30:00Z");
        check_in("America/Los_Angeles", Window::Month, now, "2026-11-01T07:00:00Z", "2026-12-01T08:00:00Z");
    }

    #[test]
    fn a_day_has_as_many_hours_as_the_clocks_give_it() {
        let night = "2026-10-25T00:30:00Z";
        check_in("Europe/Berlin", Window::Day, night, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        check_in("Europe/Berlin", Window::Hour, night, "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z");
        check_in(
            "Europe/Berlin",
            Window::Hour,
            "2026-10-25T01:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T02:00:00Z",
        );
    }
}
