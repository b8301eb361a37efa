//! The names of accounts: paths in a tree.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

/// The name of an account, stable across restarts: its path from the root, as in `acme/research/alice`.
///
/// Whatever an account spends, all its ancestors spend too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AccountId(Arc<str>);

/// Why a text is not the name of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountIdError {
    /// A step of the path is empty.
    #[error("an account needs a name, and each part between slashes too")]
    Empty,
    /// It is too long to be kept.
    #[error(
        "an account's path has at most {} bytes and {} parts",
        AccountId::LENGTH_MAX,
        AccountId::DEPTH_MAX
    )]
    Long,
    /// A character that would not survive a log, a header or a table.
    #[error("an account's name has no control characters, and no spaces at the ends of its parts")]
    Unprintable,
}

impl AccountId {
    /// The longest path, in bytes.
    pub const LENGTH_MAX: usize = 256;
    /// The deepest tree.
    pub const DEPTH_MAX: usize = 16;

    /// The account of that name, which is known to be one.
    pub fn new(name: impl Into<Arc<str>>) -> AccountId {
        AccountId(name.into())
    }

    /// Its child of that name.
    #[must_use]
    pub fn child(&self, name: &str) -> AccountId {
        AccountId(format!("{}/{name}", self.0).into())
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Its ancestors' paths, the root first, and its own last.
    pub fn lineage(&self) -> impl Iterator<Item = &str> + Clone {
        let slashes = self.0.match_indices('/').map(|(at, _)| &self.0[..at]);
        slashes.chain(std::iter::once(&*self.0))
    }

    /// True for the account itself and everything below it.
    pub fn contains(&self, other: &AccountId) -> bool {
        let rest = other.0.strip_prefix(&*self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for AccountId {
    type Err = AccountIdError;

    fn from_str(path: &str) -> Result<AccountId, AccountIdError> {
        if path.len() > AccountId::LENGTH_MAX || path.split('/').count() > AccountId::DEPTH_MAX {
            return Err(AccountIdError::Long);
        }
        for part in path.split('/') {
            if part.is_empty() {
                return Err(AccountIdError::Empty);
            }
            if part.trim() != part || part.chars().any(char::is_control) {
                return Err(AccountIdError::Unprintable);
            }
        }
        Ok(AccountId::new(path))
    }
}

impl Borrow<str> for AccountId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_begins_at_the_root_and_ends_at_the_account() {
        let account = AccountId::new("acme/research/alice");
        assert_eq!(account.lineage().collect::<Vec<_>>(), ["acme", "acme/research", "acme/research/alice"]);
        assert_eq!(account.name(), "alice");
        assert_eq!(AccountId::new("alice").lineage().collect::<Vec<_>>(), ["alice"]);
    }

    #[test]
    fn an_account_holds_what_is_below_it_and_no_namesakes() {
        let acme = AccountId::new("acme");
        assert!(acme.contains(&acme) && acme.contains(&acme.child("alice")));
        assert!(!acme.contains(&AccountId::new("acmes/alice")) && !acme.child("alice").contains(&acme));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let check = |path: &str, error| assert_eq!(path.parse::<AccountId>(), Err(error), "{path:?}");
        check("", AccountIdError::Empty);
        check("/acme", AccountIdError::Empty);
        check("acme//alice", AccountIdError::Empty);
        check("acme/ alice", AccountIdError::Unprintable);
        check("ac\nme", AccountIdError::Unprintable);
        check(&"a".repeat(257), AccountIdError::Long);
        check(&"a/".repeat(17), AccountIdError::Long);
        assert!("acme/Müller & Söhne".parse::<AccountId>().is_ok());
    }
}
