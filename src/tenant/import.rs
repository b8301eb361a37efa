//! Keys and accounts from a text, all or none. Pure: the time is an argument.

use std::collections::{HashMap, HashSet};

use crate::units::{AccountId, Timestamp};

use super::changes::{new_record, replaced};
use super::{Book, Change, Declared, KeyHash, KeyId, KeyRecord, KeyRefused, Tenant, Terms};

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

/// What is stored, by what an import looks for: it may bring thousands of keys.
struct Known<'b> {
    /// Every key that is not revoked, by its account.
    keys: HashMap<&'b AccountId, &'b KeyRecord>,
    /// Every key that has or had a secret, the revoked ones too.
    secrets: HashMap<KeyHash, &'b KeyRecord>,
}

impl<'b> Known<'b> {
    fn of(book: &'b Book) -> Known<'b> {
        let (mut keys, mut secrets) = (HashMap::new(), HashMap::new());
        for record in book.unrevoked() {
            keys.entry(&record.account).or_insert(record);
        }
        for record in book.stored.keys.values() {
            for hash in record.hashes() {
                secrets.entry(*hash).or_insert(record);
            }
        }
        Known { keys, secrets }
    }
}

impl Book {
    /// All that is said, and nothing that is not: what the text leaves out stays as it is.
    pub(super) fn import(
        &self,
        wanted: &Declared,
        now: Timestamp,
    ) -> Result<(Vec<Change>, Imported), KeyRefused> {
        let (mut changes, mut refused, mut count) = (Vec::new(), Vec::new(), Imported::default());
        let known = Known::of(self);
        let terms: HashMap<&AccountId, &Terms> =
            wanted.terms.iter().map(|terms| (&terms.account, terms)).collect();
        let of_keys: HashSet<&AccountId> = wanted.tenants.iter().map(|tenant| &tenant.account).collect();
        let keys = wanted
            .tenants
            .iter()
            .map(|tenant| self.import_key(&known, tenant, terms.get(&tenant.account).copied(), now));
        let others = wanted.terms.iter().filter(|terms| !of_keys.contains(&terms.account));
        for step in keys.chain(others.map(|terms| self.import_account(&known, terms))) {
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
        known: &Known<'_>,
        wanted: &Tenant,
        own: Option<&Terms>,
        now: Timestamp,
    ) -> Result<(Step, Vec<Change>), KeyRefused> {
        let (mut step, key) = self.import_secret(known, wanted, now)?;
        let mut changes = Vec::from_iter(key.map(Change::Key));
        if let Some(own) = own.filter(|own| self.terms_of(&own.account) != **own) {
            changes.extend(self.set_terms(own)?);
            step = if step == Step::New { step } else { Step::Other };
        }
        Ok((step, changes))
    }

    fn import_secret(
        &self,
        known: &Known<'_>,
        wanted: &Tenant,
        now: Timestamp,
    ) -> Result<(Step, Option<KeyRecord>), KeyRefused> {
        let Some(hash) = wanted.key else { return Ok((Step::Same, None)) };
        let account = &wanted.account;
        if let Some(tenant) = self.index.key(account) {
            let same = tenant == wanted;
            return if same { Ok((Step::Same, None)) } else { Err(KeyRefused::Declared(account.clone())) };
        }
        if wanted.second.is_some() {
            return Err(KeyRefused::TwoSecrets(account.clone()));
        }
        let own = known.keys.get(account).copied();
        self.check_secret(known, account, hash)?;
        let record = match own {
            None => new_record(KeyId::generate()?, account, hash, now),
            Some(own) if own.hash == hash => own.clone(),
            Some(own) => replaced(own.clone(), hash, now),
        };
        let (access, expires, priority) = (wanted.access.clone(), wanted.expires, wanted.priority);
        let record = KeyRecord { access, expires, priority, ..record };
        Ok(match own {
            None => (Step::New, Some(record)),
            Some(own) if *own == record => (Step::Same, None),
            Some(_) => (Step::Other, Some(record)),
        })
    }

    fn import_account(&self, known: &Known<'_>, wanted: &Terms) -> Result<(Step, Vec<Change>), KeyRefused> {
        let is_there = known.keys.contains_key(&wanted.account) || self.has_account(&wanted.account);
        match is_there {
            true if self.terms_of(&wanted.account) == *wanted => Ok((Step::Same, Vec::new())),
            true => Ok((Step::Other, self.set_terms(wanted)?)),
            false => Ok((Step::New, self.set_terms(wanted)?)),
        }
    }

    /// A secret that is or was another's, or that was replaced, does not come in by a text.
    fn check_secret(&self, known: &Known<'_>, account: &AccountId, hash: KeyHash) -> Result<(), KeyRefused> {
        if let Some(other) = self.index.with_secret(hash) {
            return Err(KeyRefused::SameSecret(account.clone(), other.account.clone()));
        }
        let own = known.keys.get(account);
        match known.secrets.get(&hash) {
            None => Ok(()),
            Some(record) if Some(record) == own && record.hash == hash => Ok(()),
            Some(record) if record.account == *account => Err(KeyRefused::Replaced(account.clone())),
            Some(record) => Err(KeyRefused::SameSecret(account.clone(), record.account.clone())),
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
