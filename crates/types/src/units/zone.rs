//! The time zone whose calendar an account's windows follow.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;

/// A time zone of the IANA database. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(pub(super) TimeZone);

/// A name that the time zone database does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone {0:?}: write it like \"Europe/Berlin\" or \"UTC\"")]
pub struct UnknownZone(String);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }
}

impl Default for Zone {
    fn default() -> Zone {
        Zone::UTC
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Zone, UnknownZone> {
        TimeZone::get(name).map(Zone).map_err(|_| UnknownZone(name.to_owned()))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
