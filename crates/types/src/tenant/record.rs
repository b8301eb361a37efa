//! What is stored of keys and accounts that were made while the gateway ran.

use std::collections::BTreeMap;

use crate::units::{AccountId, Priority, Timestamp};

use super::{AccountTerms, KeyAccess, KeyHash, KeyId};

/// A key as it is kept. Records are never deleted: a secret that was replaced or revoked must not come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its public name.
    pub id: KeyId,
    /// Its account in the ledger; no other key that is not revoked has it.
    pub account: AccountId,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// The secrets that it had before, the oldest first.
    pub retired: Vec<RetiredSecret>,
    /// What it may name and do.
    pub access: KeyAccess,
    /// Who goes first where requests wait.
    pub priority: Priority,
    /// When it was made.
    pub created: Timestamp,
    /// From when on it is refused.
    pub expires: Option<Timestamp>,
    /// When it was revoked, with all its secrets and for good.
    pub revoked: Option<Timestamp>,
}

/// A secret that was replaced by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetiredSecret {
    /// Its hash.
    pub hash: KeyHash,
    /// From when on it is refused.
    pub until: Timestamp,
}

/// How often what is kept has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreVersion(pub u64);

/// All that is kept, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyStoreState {
    /// Which moment.
    pub version: StoreVersion,
    /// Every key, the revoked ones too.
    pub keys: BTreeMap<KeyId, KeyRecord>,
    /// What accounts may spend, those of keys included.
    pub terms: BTreeMap<AccountId, AccountTerms>,
}

/// One change of what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyStoreChange {
    /// This is the key of that id from now on.
    PutKey(KeyRecord),
    /// These are the terms of that account from now on.
    PutTerms(AccountTerms),
    /// The account has none any more.
    RemoveTerms(AccountId),
}

impl KeyRecord {
    /// Every secret that was ever its own.
    pub fn hashes(&self) -> impl Iterator<Item = &KeyHash> {
        self.retired.iter().map(|retired| &retired.hash).chain([&self.hash])
    }
}

impl KeyStoreState {
    /// The next version, with these changes.
    pub fn apply(&mut self, changes: &[KeyStoreChange]) {
        for change in changes {
            match change {
                KeyStoreChange::PutKey(key) => drop(self.keys.insert(key.id, key.clone())),
                KeyStoreChange::PutTerms(terms) => {
                    drop(self.terms.insert(terms.account.clone(), terms.clone()));
                }
                KeyStoreChange::RemoveTerms(account) => drop(self.terms.remove(account)),
            }
        }
        self.version.0 += 1;
    }
}
