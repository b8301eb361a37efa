//! A moment on the wall clock.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970 in UTC. Printed as RFC 3339.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The wall clock's time. Pure modules are given the time instead.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now() -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Whole seconds since 1970, as OpenAI's `created` member wants them.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// So long before.
    #[must_use]
    pub fn before(self, long: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(long.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A text that is no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a moment: write a day like 2026-11-20, which begins in UTC, or a time like 2026-11-20T08:00:00Z"
)]
pub struct InvalidTimestamp;

/// From RFC 3339, or from a date, for the beginning of that day in UTC.
impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Timestamp, InvalidTimestamp> {
        let whole =
            if text.len() == "2026-11-20".len() { format!("{text}T00:00:00Z") } else { text.to_owned() };
        let moment: jiff::Timestamp = whole.parse().map_err(|_| InvalidTimestamp)?;
        Ok(Timestamp(moment.as_millisecond()))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, later: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(later.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => moment.fmt(f),
            Err(_) => f.write_str("the end of time"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<i64, InvalidTimestamp>) {
        assert_eq!(text.parse::<Timestamp>(), expected.map(Timestamp), "{text}");
    }

    #[test]
    fn days_and_times_are_moments() {
        check("1970-01-02", Ok(86_400_000));
        check("1970-01-01T01:00:00.5Z", Ok(3_600_500));
        check("1970-01-01T01:00:00+01:00", Ok(0));
        check("1970-13-01", Err(InvalidTimestamp));
        check("yesterday", Err(InvalidTimestamp));
        check("", Err(InvalidTimestamp));
    }
}
