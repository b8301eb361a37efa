//! Everything that is known of keys and accounts, declared and stored, at one moment.

use std::sync::Arc;

use crate::units::{AccountId, Timestamp};

use super::keys::Table;
use super::{Access, KeyHash, KeyId, KeyRecord, KeyRefused, Stored, Tenant, Terms};

/// What the configuration, or a text like it, says of keys and accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Keys.
    pub tenants: Vec<Tenant>,
    /// What accounts may spend, those of the keys included.
    pub terms: Vec<Terms>,
}

/// Where something was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the configuration, which is not written to.
    Configuration,
    /// In the store.
    Store,
}

/// A key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its public name.
    pub id: KeyId,
    /// Where it comes from.
    pub source: Source,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// What it may name and do.
    pub access: Access,
    /// When it was made; not known of declared ones.
    pub created: Option<Timestamp>,
    /// From when on it is refused.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// Until when the last secret that was replaced is taken beside its own.
    pub old_until: Option<Timestamp>,
    /// Its account, and what that may spend.
    pub terms: Terms,
}

/// All keys and terms. What is declared goes before what is stored.
#[derive(Debug, Clone)]
pub struct Book {
    pub(super) declared: Arc<Declared>,
    /// True where nobody is served without a key, though there be none.
    pub(super) required: bool,
    pub(super) stored: Stored,
}

impl Book {
    /// A book of these.
    pub fn new(declared: Declared, required: bool, stored: Stored) -> Book {
        Book { declared: Arc::new(declared), required, stored }
    }

    /// What the configuration declares.
    pub fn declared(&self) -> &Declared {
        &self.declared
    }

    /// True where everybody may ask. A key that was ever stored closes it, revoked ones too: to revoke the last key is
    /// not to invite everybody.
    pub fn is_open(&self) -> bool {
        !self.required && self.declared.tenants.is_empty() && self.stored.keys.is_empty()
    }

    /// Every key, by account and id; the revoked ones among them.
    pub fn keys(&self) -> Vec<Listed> {
        let declared = self.declared.tenants.iter().filter_map(|tenant| self.declared_key(tenant));
        let stored = self.stored.keys.values().map(|record| self.stored_key(record));
        let mut keys: Vec<Listed> = declared.chain(stored).collect();
        keys.sort_by(|one, other| (&one.terms.account, one.id).cmp(&(&other.terms.account, other.id)));
        keys
    }

    /// The key of that id.
    ///
    /// # Errors
    /// When there is none.
    pub fn key(&self, id: KeyId) -> Result<Listed, KeyRefused> {
        if let Some(record) = self.stored.keys.get(&id) {
            return Ok(self.stored_key(record));
        }
        let declared = self.declared_tenant(id).and_then(|tenant| self.declared_key(tenant));
        declared.ok_or(KeyRefused::Unknown(id))
    }

    /// The terms in force of every account that has any: a key's that says nothing is without limits.
    pub fn terms(&self) -> Vec<Terms> {
        let mut all = self.stored.terms.clone();
        all.extend(self.declared.terms.iter().map(|terms| (terms.account.clone(), terms.clone())));
        let open = self.is_open().then(|| Tenant::anonymous().account);
        let stored = self.live().map(|record| &record.account);
        let declared = self.declared.tenants.iter().map(|tenant| &tenant.account);
        for account in stored.chain(declared).chain(&open) {
            all.entry(account.clone()).or_insert_with(|| Terms::unlimited(account.clone()));
        }
        all.into_values().collect()
    }

    /// One account's terms, and where they come from.
    ///
    /// # Errors
    /// When it has none and no key.
    pub fn account(&self, account: &AccountId) -> Result<(Terms, Source), KeyRefused> {
        if let Some(terms) = self.declared.terms.iter().find(|terms| terms.account == *account) {
            return Ok((terms.clone(), Source::Configuration));
        }
        let known = self.terms().into_iter().find(|terms| terms.account == *account);
        let known = known.map(|terms| (terms, Source::Store));
        known.ok_or_else(|| KeyRefused::UnknownAccount(account.clone()))
    }

    /// The stored keys that a declared one has taken the place of, by name or by secret.
    pub fn shadowed(&self) -> impl Iterator<Item = &KeyRecord> {
        self.unrevoked().filter(|record| self.is_shadowed(record))
    }

    /// What is looked up.
    pub(super) fn table(&self) -> Table {
        if self.is_open() {
            return Table::open();
        }
        let mut table = Table::default();
        for tenant in &self.declared.tenants {
            table.insert(tenant.key, tenant.expires, Arc::new(tenant.clone()));
        }
        for record in self.live() {
            let (account, access) = (record.account.clone(), record.access.clone());
            let tenant =
                Arc::new(Tenant { account, key: Some(record.hash), access, expires: record.expires });
            table.insert(Some(record.hash), record.expires, tenant.clone());
            for retired in &record.retired {
                let until = record.expires.map_or(retired.until, |expires| expires.min(retired.until));
                table.insert(Some(retired.hash), Some(until), tenant.clone());
            }
        }
        table
    }

    pub(super) fn declared_tenant(&self, id: KeyId) -> Option<&Tenant> {
        self.declared.tenants.iter().find(|tenant| KeyId::of_declared(&tenant.account) == id)
    }

    pub(super) fn unrevoked(&self) -> impl Iterator<Item = &KeyRecord> {
        self.stored.keys.values().filter(|record| record.revoked.is_none())
    }

    /// The stored keys that are looked up.
    fn live(&self) -> impl Iterator<Item = &KeyRecord> {
        self.unrevoked().filter(|record| !self.is_shadowed(record))
    }

    fn is_shadowed(&self, record: &KeyRecord) -> bool {
        self.declared
            .tenants
            .iter()
            .any(|tenant| tenant.account == record.account || tenant.key == Some(record.hash))
    }

    fn declared_key(&self, tenant: &Tenant) -> Option<Listed> {
        Some(Listed {
            id: KeyId::of_declared(&tenant.account),
            source: Source::Configuration,
            hash: tenant.key?,
            access: tenant.access.clone(),
            created: None,
            expires: tenant.expires,
            revoked: None,
            old_until: None,
            terms: self.terms_of(&tenant.account),
        })
    }

    fn stored_key(&self, record: &KeyRecord) -> Listed {
        Listed {
            id: record.id,
            source: Source::Store,
            hash: record.hash,
            access: record.access.clone(),
            created: Some(record.created),
            expires: record.expires,
            revoked: record.revoked,
            old_until: record.retired.iter().map(|retired| retired.until).max(),
            terms: self.terms_of(&record.account),
        }
    }

    pub(super) fn terms_of(&self, account: &AccountId) -> Terms {
        let declared = self.declared.terms.iter().find(|terms| terms.account == *account);
        let terms = declared.or_else(|| self.stored.terms.get(account));
        terms.cloned().unwrap_or_else(|| Terms::unlimited(account.clone()))
    }
}

impl Listed {
    /// In one word: `active`, `expired` or `revoked`.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now => "expired",
            _ => "active",
        }
    }
}
