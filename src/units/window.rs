//! The spans of time over which limits count.

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{ToSpan, Unit as Calendar, Zoned};
use serde::{Deserialize, Serialize};

use super::Timestamp;

/// A span over which spending is counted anew; boundaries are those of the calendar in UTC, weeks start on
/// Monday.
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
    /// When the window that holds `now` began; for all time, the beginning of time.
    pub fn start(self, now: Timestamp) -> Timestamp {
        self.bounds(now).map_or(Timestamp(i64::MIN), |(start, _)| start)
    }

    /// When the window that holds `now` ends and counting starts anew; never, for all time.
    pub fn end(self, now: Timestamp) -> Option<Timestamp> {
        self.bounds(now).map(|(_, end)| end)
    }

    fn bounds(self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let moment = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(TimeZone::UTC);
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
        assert_eq!(window.start(at(now)), at(start), "start of the {window}");
        assert_eq!(window.end(at(now)), Some(at(end)), "end of the {window}");
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
        assert_eq!(Window::Total.end(at("2026-11-20T00:00:00Z")), None);
    }
}
