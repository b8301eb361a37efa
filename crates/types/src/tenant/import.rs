//! Keys and accounts from a text, all or none. Pure: the time is an argument.

use std::collections::{HashMap, HashSet};

use crate::units::{AccountId, Timestamp};

use super::changes::{new_record, with_new_secret};
use super::{
    AccountTerms, DeclaredTenants, DirectorySnapshot, FeedbackTrust, KeyChangeError, KeyHash, KeyId,
    KeyRecord, KeyStoreChange, Tenant,
};

/// How many keys and accounts an import touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// That were not there.
    pub created: usize,
    /// That were there and are different now.
    pub changed: usize,
    /// That were there as they were to be.
    pub unchanged: usize,
}

/// What is stored, by what an import looks for: it may bring thousands of keys.
struct StoredKeyIndex<'b> {
    /// Every key that is not revoked, by its account.
    keys: HashMap<&'b AccountId, &'b KeyRecord>,
    /// Every key that has or had a secret, the revoked ones too.
    secrets: HashMap<KeyHash, &'b KeyRecord>,
}

impl<'b> StoredKeyIndex<'b> {
    fn of(snapshot: &'b DirectorySnapshot) -> StoredKeyIndex<'b> {
        let (mut keys, mut secrets) = (HashMap::new(), HashMap::new());
        for record in snapshot.unrevoked() {
            keys.entry(&record.account).or_insert(record);
        }
        for record in snapshot.stored.keys.values() {
            for hash in record.hashes() {
                secrets.entry(*hash).or_insert(record);
            }
        }
        StoredKeyIndex { keys, secrets }
    }
}

impl DirectorySnapshot {
    /// Applies what the text states; what it leaves out stays as it is.
    pub(super) fn import(
        &self,
        wanted: &DeclaredTenants,
        now: Timestamp,
    ) -> Result<(Vec<KeyStoreChange>, ImportSummary), KeyChangeError> {
        let (mut changes, mut refused, mut count) = (Vec::new(), Vec::new(), ImportSummary::default());
        let known = StoredKeyIndex::of(self);
        let terms: HashMap<&AccountId, &AccountTerms> =
            wanted.terms.iter().map(|terms| (&terms.account, terms)).collect();
        let of_keys: HashSet<&AccountId> = wanted.tenants.iter().map(|tenant| &tenant.account).collect();
        let keys = wanted
            .tenants
            .iter()
            .map(|tenant| self.import_key(&known, tenant, terms.get(&tenant.account).copied(), now));
        let others = wanted.terms.iter().filter(|terms| !of_keys.contains(&terms.account));
        for step in keys.chain(others.map(|terms| self.import_account(&known, terms))) {
            match step {
                Ok((ImportAction::Unchanged, _)) => count.unchanged += 1,
                Ok((step, more)) => {
                    let place =
                        if step == ImportAction::Created { &mut count.created } else { &mut count.changed };
                    *place += 1;
                    changes.extend(more);
                }
                Err(one) => refused.push(one),
            }
        }
        match refused.len() {
            0 => Ok((changes, count)),
            1 => Err(refused.remove(0)),
            _ => Err(KeyChangeError::Several(refused)),
        }
    }

    /// A key and its terms are one thing.
    fn import_key(
        &self,
        known: &StoredKeyIndex<'_>,
        wanted: &Tenant,
        own: Option<&AccountTerms>,
        now: Timestamp,
    ) -> Result<(ImportAction, Vec<KeyStoreChange>), KeyChangeError> {
        let (mut step, key) = self.import_secret(known, wanted, now)?;
        let mut changes = Vec::from_iter(key.map(KeyStoreChange::PutKey));
        if let Some(own) = own.filter(|own| self.terms_of(&own.account) != **own) {
            changes.extend(self.set_terms(own)?);
            step = if step == ImportAction::Created { step } else { ImportAction::Changed };
        }
        Ok((step, changes))
    }

    fn import_secret(
        &self,
        known: &StoredKeyIndex<'_>,
        wanted: &Tenant,
        now: Timestamp,
    ) -> Result<(ImportAction, Option<KeyRecord>), KeyChangeError> {
        let Some(hash) = wanted.key else { return Ok((ImportAction::Unchanged, None)) };
        let account = &wanted.account;
        if let Some(tenant) = self.index.key(account) {
            let same = tenant == wanted;
            return if same {
                Ok((ImportAction::Unchanged, None))
            } else {
                Err(KeyChangeError::Declared(account.clone()))
            };
        }
        if wanted.second.is_some() {
            return Err(KeyChangeError::TwoSecrets(account.clone()));
        }
        if wanted.feedback == FeedbackTrust::Trusted {
            return Err(KeyChangeError::Trusted(account.clone()));
        }
        let own = known.keys.get(account).copied();
        if own.is_none() {
            self.check_not_of_tokens(account)?;
        }
        self.check_secret(known, account, hash)?;
        let record = match own {
            None => new_record(KeyId::generate()?, account, hash, now),
            Some(own) if own.hash == hash => own.clone(),
            Some(own) => with_new_secret(own.clone(), hash, now),
        };
        let (access, expires, priority) = (wanted.access.clone(), wanted.expires, wanted.priority);
        let record = KeyRecord { access, expires, priority, ..record };
        Ok(match own {
            None => (ImportAction::Created, Some(record)),
            Some(own) if *own == record => (ImportAction::Unchanged, None),
            Some(_) => (ImportAction::Changed, Some(record)),
        })
    }

    fn import_account(
        &self,
        known: &StoredKeyIndex<'_>,
        wanted: &AccountTerms,
    ) -> Result<(ImportAction, Vec<KeyStoreChange>), KeyChangeError> {
        let is_there = known.keys.contains_key(&wanted.account) || self.has_account(&wanted.account);
        if is_there && self.terms_of(&wanted.account) == *wanted {
            return Ok((ImportAction::Unchanged, Vec::new()));
        }
        let action = if is_there { ImportAction::Changed } else { ImportAction::Created };
        Ok((action, self.set_terms(wanted)?))
    }

    /// A secret that is or was another's, or that was replaced, does not come in by a text.
    fn check_secret(
        &self,
        known: &StoredKeyIndex<'_>,
        account: &AccountId,
        hash: KeyHash,
    ) -> Result<(), KeyChangeError> {
        if let Some(other) = self.index.with_secret(hash) {
            return Err(KeyChangeError::SameSecret(account.clone(), other.account.clone()));
        }
        let own = known.keys.get(account);
        match known.secrets.get(&hash) {
            None => Ok(()),
            Some(record) if Some(record) == own && record.hash == hash => Ok(()),
            Some(record) if record.account == *account => Err(KeyChangeError::Replaced(account.clone())),
            Some(record) => Err(KeyChangeError::SameSecret(account.clone(), record.account.clone())),
        }
    }
}

/// What an import does with one key or account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImportAction {
    Unchanged,
    Created,
    Changed,
}
