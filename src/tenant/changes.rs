//! What is to change in a book for what an operator wants. Pure: the time and new secrets are arguments.

use std::sync::Arc;
use std::time::Duration;

use crate::units::{AccountId, Timestamp};

use super::{
    Access, Book, Change, Declared, KeyHash, KeyId, KeyRecord, KeyRefused, Retired, Tenant, Terms, TermsPatch,
};

/// Some of what a key is, to be put in place of what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPatch {
    /// The models that it may name.
    pub models: Option<Vec<Arc<str>>>,
    /// The routes that it may name.
    pub routes: Option<Vec<Arc<str>>>,
    /// Whether it may use the admin API.
    pub admin: Option<bool>,
    /// From when on it is refused; inside, never.
    pub expires: Option<Option<Timestamp>>,
    /// What its account may spend.
    pub terms: TermsPatch,
}

/// How many keys and accounts an import touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// That were not there.
    pub created: usize,
    /// That were there and are different now.
    pub changed: usize,
    /// That were there as they were to be.
    pub unchanged: usize,
}

impl KeyPatch {
    fn on(&self, record: KeyRecord) -> KeyRecord {
        let access = Access {
            models: self.models.clone().unwrap_or(record.access.models),
            routes: self.routes.clone().unwrap_or(record.access.routes),
            admin: self.admin.unwrap_or(record.access.admin),
        };
        KeyRecord { access, expires: self.expires.unwrap_or(record.expires), ..record }
    }
}

impl Book {
    /// A new key for an account that no other key has. Terms that the account has already hold for it, where it brings
    /// none of its own.
    pub(super) fn create(
        &self,
        id: KeyId,
        account: &AccountId,
        hash: KeyHash,
        wanted: &KeyPatch,
        now: Timestamp,
    ) -> Result<Vec<Change>, KeyRefused> {
        if self.index.key(account).is_some() {
            return Err(KeyRefused::Declared(account.clone()));
        }
        if self.unrevoked().any(|record| record.account == *account) {
            return Err(KeyRefused::Exists(account.clone()));
        }
        let mut changes = vec![Change::Key(wanted.on(new_record(id, account, hash, now)))];
        changes.extend(self.new_terms(account, &wanted.terms)?);
        Ok(changes)
    }

    /// Another secret for a key; the one that it had is taken until the grace is over.
    pub(super) fn rotate(
        &self,
        id: KeyId,
        hash: KeyHash,
        grace: Duration,
        now: Timestamp,
    ) -> Result<Vec<Change>, KeyRefused> {
        Ok(vec![Change::Key(replaced(self.changeable(id)?, hash, now + grace))])
    }

    /// The end of a key and of all its secrets. To revoke it again changes nothing.
    pub(super) fn revoke(&self, id: KeyId, now: Timestamp) -> Result<Vec<Change>, KeyRefused> {
        match self.changeable(id) {
            Ok(record) => Ok(vec![Change::Key(KeyRecord { revoked: Some(now), ..record })]),
            Err(KeyRefused::Revoked(_)) => Ok(Vec::new()),
            Err(refused) => Err(refused),
        }
    }

    /// Other scopes, another end or other terms.
    pub(super) fn change(&self, id: KeyId, wanted: &KeyPatch) -> Result<Vec<Change>, KeyRefused> {
        let record = self.changeable(id)?;
        let mut changes = self.new_terms(&record.account, &wanted.terms)?;
        let changed = wanted.on(record.clone());
        changes.extend((changed != record).then_some(Change::Key(changed)));
        Ok(changes)
    }

    /// These terms in place of all that the account had.
    pub(super) fn set_terms(&self, terms: &Terms) -> Result<Vec<Change>, KeyRefused> {
        self.check_terms(&terms.account)?;
        Ok(vec![Change::Terms(terms.clone())])
    }

    /// No terms for an account: the limits of others above it still hold.
    pub(super) fn drop_terms(&self, account: &AccountId) -> Result<Vec<Change>, KeyRefused> {
        self.check_terms(account)?;
        self.account(account)?;
        let stored = self.stored.terms.contains_key(account);
        Ok(stored.then(|| Change::NoTerms(account.clone())).into_iter().collect())
    }

    /// All that is said, and nothing that is not: what the text leaves out stays as it is.
    pub(super) fn import(
        &self,
        wanted: &Declared,
        now: Timestamp,
    ) -> Result<(Vec<Change>, Imported), KeyRefused> {
        let (mut changes, mut refused, mut count) = (Vec::new(), Vec::new(), Imported::default());
        let of_key = |terms: &&Terms| wanted.tenants.iter().any(|tenant| tenant.account == terms.account);
        let keys = wanted.tenants.iter().map(|tenant| self.import_key(tenant, &wanted.terms, now));
        let others = wanted.terms.iter().filter(|terms| !of_key(terms));
        for step in keys.chain(others.map(|terms| self.import_account(terms))) {
            match step {
                Ok((Step::Same, _)) => count.unchanged += 1,
                Ok((step, more)) => {
                    let place = if step == Step::New { &mut count.created } else { &mut count.changed };
                    *place += 1;
                    changes.extend(more);
                }
                Err(one) => refused.push(one),
            }
        }
        match refused.len() {
            0 => Ok((changes, count)),
            1 => Err(refused.remove(0)),
            _ => Err(KeyRefused::Several(refused)),
        }
    }

    /// A key and its terms are one thing.
    fn import_key(
        &self,
        wanted: &Tenant,
        terms: &[Terms],
        now: Timestamp,
    ) -> Result<(Step, Vec<Change>), KeyRefused> {
        let (mut step, key) = self.import_secret(wanted, now)?;
        let mut changes = Vec::from_iter(key.map(Change::Key));
        let own = terms.iter().find(|terms| terms.account == wanted.account);
        if let Some(own) = own.filter(|own| self.terms_of(&own.account) != **own) {
            changes.extend(self.set_terms(own)?);
            step = if step == Step::New { step } else { Step::Other };
        }
        Ok((step, changes))
    }

    fn import_secret(
        &self,
        wanted: &Tenant,
        now: Timestamp,
    ) -> Result<(Step, Option<KeyRecord>), KeyRefused> {
        let Some(hash) = wanted.key else { return Ok((Step::Same, None)) };
        let account = &wanted.account;
        if let Some(tenant) = self.index.key(account) {
            let same = tenant == wanted;
            return if same { Ok((Step::Same, None)) } else { Err(KeyRefused::Declared(account.clone())) };
        }
        let own = self.unrevoked().find(|record| record.account == *account);
        self.check_secret(account, hash, own)?;
        let record = match own {
            None => new_record(KeyId::generate()?, account, hash, now),
            Some(own) if own.hash == hash => own.clone(),
            Some(own) => replaced(own.clone(), hash, now),
        };
        let record = KeyRecord { access: wanted.access.clone(), expires: wanted.expires, ..record };
        Ok(match own {
            None => (Step::New, Some(record)),
            Some(own) if *own == record => (Step::Same, None),
            Some(_) => (Step::Other, Some(record)),
        })
    }

    fn import_account(&self, wanted: &Terms) -> Result<(Step, Vec<Change>), KeyRefused> {
        let known = self.account(&wanted.account).ok();
        match known {
            Some((terms, _)) if terms == *wanted => Ok((Step::Same, Vec::new())),
            Some(_) => Ok((Step::Other, self.set_terms(wanted)?)),
            None => Ok((Step::New, self.set_terms(wanted)?)),
        }
    }

    /// A secret that is or was another's, or that was replaced, does not come in by a text.
    fn check_secret(
        &self,
        account: &AccountId,
        hash: KeyHash,
        own: Option<&KeyRecord>,
    ) -> Result<(), KeyRefused> {
        if let Some(other) = self.index.with_secret(hash) {
            return Err(KeyRefused::SameSecret(account.clone(), other.account.clone()));
        }
        let holds = |record: &&KeyRecord| record.hashes().any(|known| *known == hash);
        match self.stored.keys.values().find(holds) {
            None => Ok(()),
            Some(record) if Some(record) == own && record.hash == hash => Ok(()),
            Some(record) if record.account == *account => Err(KeyRefused::Replaced(account.clone())),
            Some(record) => Err(KeyRefused::SameSecret(account.clone(), record.account.clone())),
        }
    }

    fn new_terms(&self, account: &AccountId, wanted: &TermsPatch) -> Result<Vec<Change>, KeyRefused> {
        let had = self.terms_of(account);
        let terms = wanted.on(had.clone());
        if terms == had {
            return Ok(Vec::new());
        }
        self.set_terms(&terms)
    }

    fn check_terms(&self, account: &AccountId) -> Result<(), KeyRefused> {
        match self.index.terms(account).is_some() {
            true => Err(KeyRefused::Declared(account.clone())),
            false => Ok(()),
        }
    }

    fn changeable(&self, id: KeyId) -> Result<KeyRecord, KeyRefused> {
        match self.stored.keys.get(&id) {
            Some(record) if record.revoked.is_some() => Err(KeyRefused::Revoked(id)),
            Some(record) => Ok(record.clone()),
            None => Err(match self.index.of_id(id) {
                Some(tenant) => KeyRefused::Declared(tenant.account.clone()),
                None => KeyRefused::Unknown(id),
            }),
        }
    }
}

/// What an import does with one key or account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    New,
    Other,
}

fn new_record(id: KeyId, account: &AccountId, hash: KeyHash, now: Timestamp) -> KeyRecord {
    KeyRecord {
        id,
        account: account.clone(),
        hash,
        retired: Vec::new(),
        access: Access::default(),
        created: now,
        expires: None,
        revoked: None,
    }
}

fn replaced(record: KeyRecord, hash: KeyHash, until: Timestamp) -> KeyRecord {
    let mut retired = record.retired;
    retired.push(Retired { hash: record.hash, until });
    KeyRecord { hash, retired, ..record }
}
