//! The name of one agent run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// The name of one run of an agent, unique under its key's account: a caller's own word, or one that was made up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct EpisodeId(Arc<str>);

/// Why a text is not the name of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EpisodeIdError {
    /// Nothing is there.
    #[error("empty; an episode needs a name")]
    Empty,
    /// It is too long to be kept.
    #[error("too long; an episode's name has at most {} bytes", EpisodeId::LENGTH_MAX)]
    Long,
    /// A character that would not survive a log, a header or a table.
    #[error("not a name; an episode's name has no control characters, and no spaces at its ends")]
    Unprintable,
}

impl EpisodeId {
    /// The longest name, in bytes.
    pub const LENGTH_MAX: usize = 128;

    /// The name as it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EpisodeId {
    type Err = EpisodeIdError;

    fn from_str(name: &str) -> Result<EpisodeId, EpisodeIdError> {
        if name.is_empty() {
            return Err(EpisodeIdError::Empty);
        }
        if name.len() > EpisodeId::LENGTH_MAX {
            return Err(EpisodeIdError::Long);
        }
        if name.trim() != name || name.chars().any(char::is_control) {
            return Err(EpisodeIdError::Unprintable);
        }
        Ok(EpisodeId(name.into()))
    }
}

impl<'de> Deserialize<'de> for EpisodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EpisodeId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_can_be_printed() {
        let error = |name: &str| name.parse::<EpisodeId>().err();
        assert_eq!(error("task-42"), None);
        assert_eq!(error(&"e".repeat(128)), None);
        assert_eq!(error(""), Some(EpisodeIdError::Empty));
        assert_eq!(error(&"e".repeat(129)), Some(EpisodeIdError::Long));
        assert_eq!(error(" task"), Some(EpisodeIdError::Unprintable));
        assert_eq!(error("a\nb"), Some(EpisodeIdError::Unprintable));
    }
}
