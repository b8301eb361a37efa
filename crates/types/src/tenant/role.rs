//! How far somebody may go on the admin API.

use serde::{Serialize, Serializer};

/// A role on the admin API. Each may what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminRole {
    /// Sees everything, and changes nothing.
    Read,
    /// Manages keys and accounts, but no key of a higher role than its own, nor what such a key may spend.
    Keys,
    /// Everything.
    All,
}

impl AdminRole {
    /// Each with its word.
    pub const WORDS: [(&str, AdminRole); 3] =
        [("read", AdminRole::Read), ("keys", AdminRole::Keys), ("all", AdminRole::All)];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            AdminRole::Read => "read",
            AdminRole::Keys => "keys",
            AdminRole::All => "all",
        }
    }

    /// The role of that word.
    pub fn named(word: &str) -> Option<AdminRole> {
        AdminRole::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, role)| role)
    }
}

impl Serialize for AdminRole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
