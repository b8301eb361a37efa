//! A moment on the wall clock.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

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

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, later: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(later.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a moment: write it like \"2027-01-31T12:00:00Z\"")]
pub struct NotAMoment;

/// From RFC 3339.
impl FromStr for Timestamp {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Timestamp, NotAMoment> {
        let moment: jiff::Timestamp = text.parse().map_err(|_| NotAMoment)?;
        Ok(Timestamp(moment.as_millisecond()))
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
