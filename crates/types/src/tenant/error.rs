//! Why a key or an account is not changed.

use crate::units::AccountId;

use super::{AdminRole, KeyError, KeyId, KeyStoreError, KeyTableError};

/// Why a key or an account is not changed, or not found.
#[derive(Debug, thiserror::Error)]
pub enum KeyChangeError {
    /// No key has that id.
    #[error("there is no key {0}; `stint keys list` or GET /admin/keys shows them")]
    Unknown(KeyId),
    /// No account has that path.
    #[error("there is no account {0}, neither declared nor of a key")]
    UnknownAccount(AccountId),
    /// It stands in the configuration.
    #[error("{0} is declared in the configuration: change it there and reload (kill -HUP)")]
    Declared(AccountId),
    /// Another key has the account.
    #[error("there is a key {0} already: rotate or revoke it, or choose another name")]
    Exists(AccountId),
    /// It is in a tree of callers with tokens.
    #[error("accounts below {1} belong to callers with tokens of an issuer: give {0} a name outside of it")]
    OfTokens(AccountId, AccountId),
    /// It was revoked.
    #[error("the key {0} was revoked, which is for good: make another one")]
    Revoked(KeyId),
    /// A secret is offered that was in use before.
    #[error(
        "{0}: this hash is of a secret that was replaced or revoked, so it does not come back: export again, or make a new key"
    )]
    Replaced(AccountId),
    /// A key with two secrets is to be stored, where there is one, and old ones for a time.
    #[error(
        "{0} has two hashes, which only a key in the configuration may have: keep one, and rotate the stored key"
    )]
    TwoSecrets(AccountId),
    /// A key whose words on answers are trusted is to be stored.
    #[error(
        "{0} has feedback = \"trusted\", which only a key in the configuration may have: take it out, or declare the key there"
    )]
    Trusted(AccountId),
    /// Two keys would have one secret.
    #[error("{0} and {1} have the same hash: make each a key of its own")]
    SameSecret(AccountId, AccountId),
    /// Several things cannot be taken over, so none was.
    #[error("{}", lines(.0))]
    Several(Vec<KeyChangeError>),
    /// Who asks for it has a lower role.
    #[error("this takes the role \"{}\", which is beyond yours, \"{}\": ask with a key that has it", role.as_str(), own.as_str())]
    RoleTooLow {
        /// The role of a key that it is about, or that it takes.
        role: AdminRole,
        /// The role of who asks.
        own: AdminRole,
    },
    /// Who asks for it has no role, or none any more.
    #[error("{} may not use the admin API any more", .0.as_ref().map_or("this key", AccountId::as_str))]
    NotAdmin(Option<AccountId>),
    /// The declared keys contradict each other.
    #[error(transparent)]
    Keys(#[from] KeyTableError),
    /// No secret could be made.
    #[error(transparent)]
    Secret(#[from] KeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KeyStoreError),
}

fn lines(list: &[KeyChangeError]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
