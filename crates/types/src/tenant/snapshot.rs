//! Everything that is known of keys and accounts, declared and stored, at one moment.

use std::sync::Arc;

use crate::units::{AccountId, Priority, Timestamp};

use super::declared::DeclaredIndex;
use super::keys::KeyTable;
use super::token_accounts::TokenAccounts;
use super::{
    AccountTerms, AdminRole, DeclaredTenants, KeyAccess, KeyChangeError, KeyHash, KeyId, KeyRecord,
    KeyStoreState, Tenant,
};

/// Where something was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordSource {
    /// In the configuration, which is not written to.
    Configuration,
    /// In the store.
    Store,
}

/// A key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// Its public name.
    pub id: KeyId,
    /// Where it comes from.
    pub source: RecordSource,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// The hash of another that is taken beside it, where two are declared.
    pub second: Option<KeyHash>,
    /// What it may name and do.
    pub access: KeyAccess,
    /// Who goes first where requests wait.
    pub priority: Priority,
    /// When it was made; not known of declared ones.
    pub created: Option<Timestamp>,
    /// From when on it is refused.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// True if a declared key has replaced it, by name or by secret, so that it is not accepted.
    pub shadowed: bool,
    /// Until when the last secret that was replaced is taken beside its own.
    pub old_until: Option<Timestamp>,
    /// Its account, and what that may spend.
    pub terms: AccountTerms,
}

/// All keys and terms. What is declared overrides what is stored.
#[derive(Debug, Clone)]
pub struct DirectorySnapshot {
    pub(super) index: Arc<DeclaredIndex>,
    /// True if nobody is served without a key, though there be none.
    pub(super) required: bool,
    pub(super) stored: KeyStoreState,
    /// Who came with tokens.
    pub(super) tokens: Arc<TokenAccounts>,
}

impl DirectorySnapshot {
    /// A snapshot of these.
    pub fn new(declared: DeclaredTenants, required: bool, stored: KeyStoreState) -> DirectorySnapshot {
        let (index, tokens) = (Arc::new(DeclaredIndex::new(declared)), Arc::default());
        DirectorySnapshot { index, required, stored, tokens }
    }

    /// The same, with those accounts of another's callers with tokens that it has a tree for.
    #[must_use]
    pub(super) fn with_tokens_of(self, other: &DirectorySnapshot) -> DirectorySnapshot {
        let tokens = other.tokens.within(&self.declared().token_trees).into();
        DirectorySnapshot { tokens, ..self }
    }

    /// What the configuration declares.
    pub fn declared(&self) -> &DeclaredTenants {
        &self.index.declared
    }

    /// True if everybody may ask. A key that was ever stored closes it, revoked ones too: to revoke the last key is
    /// not to invite everybody.
    pub fn is_open(&self) -> bool {
        let declared = self.declared();
        let is_closed = self.required || !declared.tenants.is_empty() || !declared.token_trees.is_empty();
        !is_closed && self.stored.keys.is_empty()
    }

    /// Every key, by account and id; the revoked ones among them.
    pub fn keys(&self) -> Vec<ListedKey> {
        let declared = self.declared().tenants.iter().filter_map(|tenant| self.declared_key(tenant));
        let stored = self.stored.keys.values().map(|record| self.stored_key(record));
        let mut keys: Vec<ListedKey> = declared.chain(stored).collect();
        keys.sort_by(|one, other| (&one.terms.account, one.id).cmp(&(&other.terms.account, other.id)));
        keys
    }

    /// The key of that id.
    ///
    /// # Errors
    /// When there is none.
    pub fn key(&self, id: KeyId) -> Result<ListedKey, KeyChangeError> {
        if let Some(record) = self.stored.keys.get(&id) {
            return Ok(self.stored_key(record));
        }
        let declared = self.index.of_id(id).and_then(|tenant| self.declared_key(tenant));
        declared.ok_or(KeyChangeError::Unknown(id))
    }

    /// The terms in force of every account that has any: a key's that says nothing is without limits.
    pub fn terms(&self) -> Vec<AccountTerms> {
        let mut all = self.stored.terms.clone();
        all.extend(self.declared().terms.iter().map(|terms| (terms.account.clone(), terms.clone())));
        let open = self.is_open().then(|| Tenant::anonymous().account);
        let stored = self.live().map(|record| &record.account);
        let declared = self.declared().tenants.iter().map(|tenant| &tenant.account);
        for account in stored.chain(declared).chain(&open) {
            all.entry(account.clone()).or_insert_with(|| AccountTerms::unlimited(account.clone()));
        }
        for terms in self.tokens.terms() {
            all.entry(terms.account.clone()).or_insert(terms);
        }
        all.into_values().collect()
    }

    /// One account's terms, and where they come from.
    ///
    /// # Errors
    /// When it has none and no key.
    pub fn account(&self, account: &AccountId) -> Result<(AccountTerms, RecordSource), KeyChangeError> {
        if let Some(terms) = self.index.terms(account) {
            return Ok((terms.clone(), RecordSource::Configuration));
        }
        let has_key = || self.unrevoked().any(|record| record.account == *account);
        if self.has_account(account) || has_key() {
            return Ok((self.terms_of(account), RecordSource::Store));
        }
        Err(KeyChangeError::UnknownAccount(account.clone()))
    }

    /// The role of an account's key now, declared or stored.
    pub(super) fn role_of(&self, account: &AccountId) -> Option<AdminRole> {
        let stored = || self.live().find(|record| record.account == *account);
        let declared = self.index.key(account).map(|tenant| tenant.access.role);
        declared.or_else(|| stored().map(|record| record.access.role))?
    }

    /// The highest role of the keys that have this account, those included that are expired or shadowed.
    pub(super) fn highest_role_of(&self, account: &AccountId) -> Option<AdminRole> {
        let stored = self.unrevoked().filter(|record| record.account == *account);
        let declared = self.index.key(account).and_then(|tenant| tenant.access.role);
        stored.map(|record| record.access.role).max().flatten().max(declared)
    }

    /// True if something is known of an account besides a stored key of its own.
    pub(super) fn has_account(&self, account: &AccountId) -> bool {
        let anonymous = || self.is_open() && *account == Tenant::anonymous().account;
        let is_declared = || self.index.terms(account).is_some() || self.index.key(account).is_some();
        self.stored.terms.contains_key(account) || is_declared() || anonymous() || self.has_token(account)
    }

    /// True if an account is known from a token.
    pub(super) fn has_token(&self, account: &AccountId) -> bool {
        self.tokens.get(account).is_some()
    }

    /// The stored keys that a declared one has taken the place of, by name or by secret.
    pub fn shadowed(&self) -> impl Iterator<Item = &KeyRecord> {
        self.unrevoked().filter(|record| self.is_shadowed(record))
    }

    /// What is looked up.
    pub(super) fn table(&self) -> KeyTable {
        if self.is_open() {
            return KeyTable::open();
        }
        let mut table = KeyTable::default();
        table.takes_tokens = !self.declared().token_trees.is_empty();
        for tenant in &self.declared().tenants {
            table.insert_both(Arc::new(tenant.clone()));
        }
        for record in self.live() {
            let (account, access) = (record.account.clone(), record.access.clone());
            let (expires, priority) = (record.expires, record.priority);
            let tenant =
                Tenant { id: record.id, access, expires, priority, ..Tenant::new(account, record.hash) };
            let tenant = Arc::new(tenant);
            table.insert(Some(record.hash), record.expires, tenant.clone());
            for retired in &record.retired {
                let until = record.expires.map_or(retired.until, |expires| expires.min(retired.until));
                table.insert(Some(retired.hash), Some(until), tenant.clone());
            }
        }
        table
    }

    pub(super) fn unrevoked(&self) -> impl Iterator<Item = &KeyRecord> {
        self.stored.keys.values().filter(|record| record.revoked.is_none())
    }

    /// The stored keys that are looked up.
    fn live(&self) -> impl Iterator<Item = &KeyRecord> {
        self.unrevoked().filter(|record| !self.is_shadowed(record))
    }

    fn is_shadowed(&self, record: &KeyRecord) -> bool {
        self.index.key(&record.account).is_some()
            || record.hashes().any(|hash| self.index.with_secret(*hash).is_some())
    }

    fn declared_key(&self, tenant: &Tenant) -> Option<ListedKey> {
        Some(ListedKey {
            id: KeyId::of_declared(&tenant.account),
            source: RecordSource::Configuration,
            hash: tenant.key?,
            second: tenant.second,
            access: tenant.access.clone(),
            priority: tenant.priority,
            created: None,
            expires: tenant.expires,
            revoked: None,
            shadowed: false,
            old_until: None,
            terms: self.terms_of(&tenant.account),
        })
    }

    fn stored_key(&self, record: &KeyRecord) -> ListedKey {
        ListedKey {
            id: record.id,
            source: RecordSource::Store,
            hash: record.hash,
            second: None,
            access: record.access.clone(),
            priority: record.priority,
            created: Some(record.created),
            expires: record.expires,
            revoked: record.revoked,
            shadowed: self.is_shadowed(record),
            old_until: record.retired.iter().map(|retired| retired.until).max(),
            terms: self.terms_of(&record.account),
        }
    }

    pub(super) fn terms_of(&self, account: &AccountId) -> AccountTerms {
        let of_token = || self.tokens.get(account).map(|known| known.terms);
        let written = self.index.terms(account).or_else(|| self.stored.terms.get(account));
        written.cloned().or_else(of_token).unwrap_or_else(|| AccountTerms::unlimited(account.clone()))
    }
}

impl ListedKey {
    /// In one word: `active`, `expired`, `shadowed` or `revoked`.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            _ if self.shadowed => "shadowed",
            (None, Some(expires)) if expires <= now => "expired",
            _ => "active",
        }
    }
}
