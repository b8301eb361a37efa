//! The changes to stored keys and accounts that an operation of an operator takes. `Directory` plans with them and stores them.
//! Pure: the time and new secrets are arguments.

use std::sync::Arc;
use std::time::Duration;

use crate::units::{AccountId, Priority, Timestamp};

use super::{
    AccountTerms, AdminRole, DirectorySnapshot, KeyAccess, KeyChangeError, KeyHash, KeyId, KeyRecord,
    KeyStoreChange, RetiredSecret, TermsPatch,
};

/// Some of what a key is, to be put in place of what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPatch {
    /// The models that it may name.
    pub models: Option<Vec<Arc<str>>>,
    /// The routes that it may name.
    pub routes: Option<Vec<Arc<str>>>,
    /// What it may on the admin API; inside, nothing.
    pub role: Option<Option<AdminRole>>,
    /// Who goes first where requests wait.
    pub priority: Option<Priority>,
    /// From when on it is refused; inside, never.
    pub expires: Option<Option<Timestamp>>,
    /// What its account may spend.
    pub terms: TermsPatch,
}

impl KeyPatch {
    fn apply_to(&self, record: KeyRecord) -> KeyRecord {
        let access = KeyAccess {
            models: self.models.clone().unwrap_or(record.access.models),
            routes: self.routes.clone().unwrap_or(record.access.routes),
            role: self.role.unwrap_or(record.access.role),
        };
        let priority = self.priority.unwrap_or(record.priority);
        KeyRecord { access, priority, expires: self.expires.unwrap_or(record.expires), ..record }
    }
}

impl DirectorySnapshot {
    /// A new key for an account that no other key has. Terms that the account has already hold for it, where it brings
    /// none of its own.
    pub(super) fn create(
        &self,
        id: KeyId,
        account: &AccountId,
        hash: KeyHash,
        wanted: &KeyPatch,
        now: Timestamp,
    ) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        self.check_not_of_tokens(account)?;
        if self.index.key(account).is_some() {
            return Err(KeyChangeError::Declared(account.clone()));
        }
        if self.unrevoked().any(|record| record.account == *account) {
            return Err(KeyChangeError::Exists(account.clone()));
        }
        let mut changes = vec![KeyStoreChange::PutKey(wanted.apply_to(new_record(id, account, hash, now)))];
        changes.extend(self.new_terms(account, &wanted.terms)?);
        Ok(changes)
    }

    /// Another secret for a key. Those that it had are taken until the grace is over at the latest.
    pub(super) fn rotate(
        &self,
        id: KeyId,
        hash: KeyHash,
        grace: Duration,
        now: Timestamp,
    ) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        Ok(vec![KeyStoreChange::PutKey(with_new_secret(self.changeable(id)?, hash, now + grace))])
    }

    /// The end of a key and of all its secrets. To revoke it again changes nothing.
    pub(super) fn revoke(&self, id: KeyId, now: Timestamp) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        match self.changeable(id) {
            Ok(record) => Ok(vec![KeyStoreChange::PutKey(KeyRecord { revoked: Some(now), ..record })]),
            Err(KeyChangeError::Revoked(_)) => Ok(Vec::new()),
            Err(refused) => Err(refused),
        }
    }

    /// Other scopes, another end or other terms.
    pub(super) fn change(&self, id: KeyId, wanted: &KeyPatch) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        let record = self.changeable(id)?;
        let mut changes = self.new_terms(&record.account, &wanted.terms)?;
        let changed = wanted.apply_to(record.clone());
        changes.extend((changed != record).then_some(KeyStoreChange::PutKey(changed)));
        Ok(changes)
    }

    /// These terms in place of all that the account had.
    pub(super) fn set_terms(&self, terms: &AccountTerms) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        self.check_terms(&terms.account)?;
        Ok(vec![KeyStoreChange::PutTerms(terms.clone())])
    }

    /// No terms for an account: the limits of others above it still hold.
    pub(super) fn drop_terms(&self, account: &AccountId) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        self.check_terms(account)?;
        self.account(account)?;
        let stored = self.stored.terms.contains_key(account);
        Ok(stored.then(|| KeyStoreChange::RemoveTerms(account.clone())).into_iter().collect())
    }

    /// Nobody gives a role above their own, takes one away, or has the secret of a key with one. Nor do they change what such a
    /// key may spend.
    pub(super) fn check_roles(
        &self,
        changes: &[KeyStoreChange],
        own: AdminRole,
    ) -> Result<(), KeyChangeError> {
        let role_touched = |change: &KeyStoreChange| match change {
            KeyStoreChange::PutKey(record) => {
                let before = self.stored.keys.get(&record.id).and_then(|before| before.access.role);
                record.access.role.max(before)
            }
            KeyStoreChange::PutTerms(terms) => self.highest_role_of(&terms.account),
            KeyStoreChange::RemoveTerms(account) => self.highest_role_of(account),
        };
        match changes.iter().filter_map(role_touched).max() {
            Some(role) if role > own => Err(KeyChangeError::RoleTooLow { role, own }),
            _ => Ok(()),
        }
    }

    /// A key below a tree of tokens' accounts would share its account with anyone whom the issuer names so.
    pub(super) fn check_not_of_tokens(&self, account: &AccountId) -> Result<(), KeyChangeError> {
        let tree = self.token_tree(account);
        tree.map_or(Ok(()), |tree| Err(KeyChangeError::OfTokens(account.clone(), tree.clone())))
    }

    fn new_terms(
        &self,
        account: &AccountId,
        wanted: &TermsPatch,
    ) -> Result<Vec<KeyStoreChange>, KeyChangeError> {
        let had = self.terms_of(account);
        let terms = wanted.apply_to(had.clone());
        if terms == had {
            return Ok(Vec::new());
        }
        self.set_terms(&terms)
    }

    fn check_terms(&self, account: &AccountId) -> Result<(), KeyChangeError> {
        if self.index.terms(account).is_some() {
            return Err(KeyChangeError::Declared(account.clone()));
        }
        Ok(())
    }

    fn changeable(&self, id: KeyId) -> Result<KeyRecord, KeyChangeError> {
        match self.stored.keys.get(&id) {
            Some(record) if record.revoked.is_some() => Err(KeyChangeError::Revoked(id)),
            Some(record) => Ok(record.clone()),
            None => Err(match self.index.of_id(id) {
                Some(tenant) => KeyChangeError::Declared(tenant.account.clone()),
                None => KeyChangeError::Unknown(id),
            }),
        }
    }
}

pub(super) fn new_record(id: KeyId, account: &AccountId, hash: KeyHash, now: Timestamp) -> KeyRecord {
    KeyRecord {
        id,
        account: account.clone(),
        hash,
        retired: Vec::new(),
        access: KeyAccess::default(),
        priority: Priority::default(),
        created: now,
        expires: None,
        revoked: None,
    }
}

/// The record with another secret. None that it had before is taken after `until`, whatever grace an earlier rotation gave.
pub(super) fn with_new_secret(record: KeyRecord, hash: KeyHash, until: Timestamp) -> KeyRecord {
    let mut retired = record.retired;
    retired.iter_mut().for_each(|older| older.until = older.until.min(until));
    retired.push(RetiredSecret { hash: record.hash, until });
    KeyRecord { hash, retired, ..record }
}
