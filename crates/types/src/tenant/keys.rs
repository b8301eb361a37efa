//! The lookup of tenants by key, which every request does. Changes replace the table.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::units::{AccountId, Priority, Timestamp};

use super::{FeedbackTrust, KeyAccess, KeyHash, KeyId, hash_key};

/// Someone who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its account in the ledger: it must not change between restarts.
    pub account: AccountId,
    /// The id of its key, whose own what it stores is. Without a stored key it follows from the account.
    pub id: KeyId,
    /// The hash of its key; none for the anonymous tenant.
    pub key: Option<KeyHash>,
    /// The hash of another key that is taken beside it, while one of them is replaced by the other.
    pub second: Option<KeyHash>,
    /// What it may name and do.
    pub access: KeyAccess,
    /// From when on its key is refused.
    pub expires: Option<Timestamp>,
    /// Who goes first where requests wait; a request may say less.
    pub priority: Priority,
    /// How far its words on answers are trusted.
    pub feedback: FeedbackTrust,
}

/// All tenants, by their keys. Without any it is open: everybody is the anonymous tenant. Clones share it, and see
/// at once what is changed in it.
#[derive(Debug, Clone)]
pub struct KeyLookup {
    live: Arc<RwLock<KeyTable>>,
}

/// What is looked up: every secret that is neither replaced nor revoked for good.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    entries: HashMap<KeyHash, KeyTableEntry>,
    anonymous: Option<Arc<Tenant>>,
    /// True if callers come with tokens of an issuer too.
    pub(super) takes_tokens: bool,
}

#[derive(Debug)]
struct KeyTableEntry {
    tenant: Arc<Tenant>,
    /// From when on this secret is refused.
    until: Option<Timestamp>,
}

/// Why tenants do not make a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyTableError {
    /// Two tenants have one name, so they would share one account.
    #[error("two tenants are called {0}: give each its own name")]
    NameTwice(AccountId),
    /// Two tenants have one key.
    #[error("tenants {0} and {1} have the same key: give each its own")]
    KeyTwice(AccountId, AccountId),
    /// A tenant without a key, which nobody could be.
    #[error("tenant {0} has no key: add one, or leave the tenant out")]
    NoKey(AccountId),
}

impl Tenant {
    /// The name of the tenant whose key the first start makes.
    pub const FIRST: &str = "first";

    /// The tenant that everybody is where no keys are configured; without limits.
    pub fn anonymous() -> Tenant {
        Tenant::without_key(AccountId::new("anonymous"))
    }

    /// The owner of a key that may name everything and does not expire.
    pub fn new(account: AccountId, key: KeyHash) -> Tenant {
        Tenant { key: Some(key), ..Tenant::without_key(account) }
    }

    /// Whether something stored is this key's own: a later key of the same name does not have it. Earlier versions did not store
    /// the key; then the account alone says whose it is.
    pub fn owns(&self, account: &AccountId, key: Option<KeyId>) -> bool {
        *account == self.account && key.is_none_or(|key| key == self.id)
    }

    /// Whether this key may read something stored: its own, and what accounts below its own have stored.
    pub fn may_read(&self, account: &AccountId, key: Option<KeyId>) -> bool {
        self.owns(account, key) || (*account != self.account && self.account.contains(account))
    }

    fn without_key(account: AccountId) -> Tenant {
        Tenant {
            id: KeyId::of_declared(&account),
            account,
            key: None,
            second: None,
            access: KeyAccess::default(),
            expires: None,
            priority: Priority::default(),
            feedback: FeedbackTrust::default(),
        }
    }
}

impl KeyLookup {
    /// A table of these tenants; an open one if there are none.
    pub fn new(tenants: Vec<Tenant>) -> Result<KeyLookup, KeyTableError> {
        check(&tenants)?;
        if tenants.is_empty() {
            return Ok(KeyLookup::open());
        }
        let mut table = KeyTable::default();
        for tenant in tenants {
            table.insert_both(Arc::new(tenant));
        }
        Ok(KeyLookup::of(table))
    }

    /// A table that takes everybody, with any key or none, for the anonymous tenant.
    pub fn open() -> KeyLookup {
        KeyLookup::of(KeyTable::open())
    }

    pub(super) fn of(table: KeyTable) -> KeyLookup {
        KeyLookup { live: Arc::new(RwLock::new(table)) }
    }

    /// Puts another table in place of this one, for all clones at once.
    pub(super) fn replace(&self, table: KeyTable) {
        let old = std::mem::replace(&mut *self.live.write().unwrap_or_else(PoisonError::into_inner), table);
        // It may be large: lookups need not wait until it is dropped.
        drop(old);
    }

    /// True if everybody may ask.
    pub fn is_open(&self) -> bool {
        self.table().anonymous.is_some()
    }

    /// Whose key it is. The cost is that of hashing the key and of one look into a table, whether it is known, expired,
    /// revoked or none at all. A caller without a key, or with an empty one, is the anonymous tenant or nobody.
    pub fn find(&self, key: Option<&str>, now: Timestamp) -> Option<Arc<Tenant>> {
        let hash = key.filter(|key| !key.is_empty()).map(hash_key);
        let table = self.table();
        if let Some(anonymous) = &table.anonymous {
            return Some(anonymous.clone());
        }
        let entry = table.entries.get(&hash?)?;
        let ended = entry.until.is_some_and(|until| until <= now);
        (!ended).then(|| entry.tenant.clone())
    }

    /// Every tenant, in no particular order.
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        let table = self.table();
        // A tenant whose key was replaced stands there with both its secrets.
        let current = |(hash, entry): (&KeyHash, &KeyTableEntry)| {
            (entry.tenant.key.as_ref() == Some(hash)).then(|| entry.tenant.clone())
        };
        table.entries.iter().filter_map(current).chain(table.anonymous.clone()).collect()
    }

    /// True if all keys are to one account, or there are none and everybody is the anonymous tenant: a gateway without keys
    /// listens on this machine alone.
    pub fn has_one_account(&self) -> bool {
        let table = self.table();
        if table.takes_tokens {
            return false;
        }
        if table.entries.is_empty() {
            return table.anonymous.is_some();
        }
        let mut accounts = table.entries.values().map(|entry| &entry.tenant.account);
        accounts.next().is_some_and(|first| accounts.all(|other| other == first))
    }

    /// How many secrets are known.
    #[cfg(test)]
    pub(super) fn secrets(&self) -> usize {
        self.table().entries.len()
    }

    fn table(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyTable {
    pub(super) fn open() -> KeyTable {
        KeyTable { anonymous: Some(Arc::new(Tenant::anonymous())), ..KeyTable::default() }
    }

    /// A declared tenant's secrets.
    pub(super) fn insert_both(&mut self, tenant: Arc<Tenant>) {
        self.insert(tenant.key, tenant.expires, tenant.clone());
        self.insert(tenant.second, tenant.expires, tenant);
    }

    /// One more secret. What is there already stays.
    pub(super) fn insert(&mut self, hash: Option<KeyHash>, until: Option<Timestamp>, tenant: Arc<Tenant>) {
        if let Some(hash) = hash {
            self.entries.entry(hash).or_insert(KeyTableEntry { tenant, until });
        }
    }
}

/// Each tenant has a key and a name of its own.
pub(super) fn check(tenants: &[Tenant]) -> Result<(), KeyTableError> {
    let (mut names, mut keys) = (HashSet::new(), HashMap::new());
    for tenant in tenants {
        let account = &tenant.account;
        let Some(key) = tenant.key else { return Err(KeyTableError::NoKey(account.clone())) };
        if !names.insert(account) {
            return Err(KeyTableError::NameTwice(account.clone()));
        }
        for key in [Some(key), tenant.second].into_iter().flatten() {
            if let Some(other) = keys.insert(key, account) {
                return Err(KeyTableError::KeyTwice(other.clone(), account.clone()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, key: &str) -> Tenant {
        Tenant::new(AccountId::new(name), hash_key(key))
    }

    fn check<'k>(keys: &KeyLookup, key: impl Into<Option<&'k str>>, expected: Option<&str>) {
        let key = key.into();
        assert_eq!(
            keys.find(key, Timestamp(0)).map(|tenant| tenant.account.to_string()).as_deref(),
            expected,
            "{key:?}"
        );
    }

    #[test]
    fn a_key_finds_its_tenant_and_no_other() {
        let keys = KeyLookup::new(vec![tenant("research", "sk-a"), tenant("product", "sk-b")]).unwrap();
        check(&keys, "sk-a", Some("research"));
        check(&keys, "sk-b", Some("product"));
        check(&keys, "sk-", None);
        check(&keys, None, None);
        assert!(!keys.is_open());
    }

    #[test]
    fn a_caller_without_a_key_is_nobody_even_where_the_empty_text_was_hashed() {
        let keys = KeyLookup::new(vec![tenant("careless", "")]).unwrap();
        check(&keys, None, None);
        check(&keys, "", None);
    }

    #[test]
    fn without_keys_everybody_is_the_anonymous_tenant() {
        let keys = KeyLookup::new(Vec::new()).unwrap();
        assert!(keys.is_open());
        check(&keys, None, Some("anonymous"));
        check(&keys, "sk-whatever", Some("anonymous"));
        assert_eq!(keys.tenants().len(), 1);
    }

    #[test]
    fn one_key_is_one_account_and_nobody_knows_how_many_come_without_one() {
        let check = |tenants: &[Tenant], expected| {
            assert_eq!(KeyLookup::new(tenants.to_vec()).unwrap().has_one_account(), expected);
        };
        check(&[], true);
        assert!(!KeyLookup::of(KeyTable::default()).has_one_account(), "nobody is served yet");
        check(&[tenant("a", "sk-a")], true);
        check(&[tenant("a", "sk-a"), tenant("a/b", "sk-b")], false);
        let (mut table, of_a) = (KeyTable::default(), Arc::new(tenant("a", "sk-new")));
        for secret in ["sk-old", "sk-new"] {
            table.insert(Some(hash_key(secret)), None, of_a.clone());
        }
        assert!(KeyLookup::of(table).has_one_account(), "a secret that is being replaced");
    }

    #[test]
    fn two_tenants_share_neither_name_nor_key() {
        let twice = KeyLookup::new(vec![tenant("a", "sk-a"), tenant("a", "sk-b")]).unwrap_err();
        assert_eq!(twice, KeyTableError::NameTwice(AccountId::new("a")));
        let twice = KeyLookup::new(vec![tenant("a", "sk-a"), tenant("b", "sk-a")]).unwrap_err();
        assert_eq!(twice, KeyTableError::KeyTwice(AccountId::new("a"), AccountId::new("b")));
        let keyless = KeyLookup::new(vec![Tenant::anonymous()]).unwrap_err();
        assert_eq!(keyless, KeyTableError::NoKey(AccountId::new("anonymous")));
    }

    #[test]
    fn a_tenant_with_two_keys_is_found_by_both_and_is_one() {
        let second = Some(hash_key("sk-new"));
        let keys = KeyLookup::new(vec![Tenant { second, ..tenant("a", "sk-old") }]).unwrap();
        check(&keys, "sk-old", Some("a"));
        check(&keys, "sk-new", Some("a"));
        assert_eq!((keys.tenants().len(), keys.has_one_account()), (1, true));
        let twice = KeyLookup::new(vec![Tenant { second, ..tenant("a", "sk-a") }, tenant("b", "sk-new")]);
        assert_eq!(twice.unwrap_err(), KeyTableError::KeyTwice(AccountId::new("a"), AccountId::new("b")));
    }

    #[test]
    fn a_key_is_refused_from_its_expiry_on() {
        let expires = Some(Timestamp(1_000));
        let keys = KeyLookup::new(vec![Tenant { expires, ..tenant("a", "sk-a") }]).unwrap();
        let known = |now| keys.find(Some("sk-a"), Timestamp(now)).is_some();
        assert_eq!([known(0), known(999), known(1_000), known(1_001)], [true, true, false, false]);
    }
}
