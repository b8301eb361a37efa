//! The table from keys to tenants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::units::AccountId;

use super::{KeyHash, hash_key};

/// Someone who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its account in the ledger: it must not change between restarts.
    pub account: AccountId,
    /// The hash of its key; none for the anonymous tenant.
    pub key: Option<KeyHash>,
}

/// All tenants, by their keys. Without any it is open: everybody is the anonymous tenant.
#[derive(Debug, Clone)]
pub struct Keys {
    tenants: HashMap<KeyHash, Arc<Tenant>>,
    anonymous: Option<Arc<Tenant>>,
}

/// Why tenants do not make a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
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
        Tenant { account: AccountId::new("anonymous"), key: None }
    }
}

impl Keys {
    /// A table of these tenants; an open one if there are none.
    pub fn new(tenants: Vec<Tenant>) -> Result<Keys, KeysError> {
        if tenants.is_empty() {
            return Ok(Keys::open());
        }
        let mut names = HashSet::new();
        let mut table = HashMap::<KeyHash, Arc<Tenant>>::with_capacity(tenants.len());
        for tenant in tenants {
            let Some(key) = tenant.key else { return Err(KeysError::NoKey(tenant.account)) };
            if !names.insert(tenant.account.clone()) {
                return Err(KeysError::NameTwice(tenant.account));
            }
            if let Some(other) = table.get(&key) {
                return Err(KeysError::KeyTwice(other.account.clone(), tenant.account));
            }
            table.insert(key, Arc::new(tenant));
        }
        Ok(Keys { tenants: table, anonymous: None })
    }

    /// A table that takes everybody, with any key or none, for the anonymous tenant.
    pub fn open() -> Keys {
        Keys { tenants: HashMap::new(), anonymous: Some(Arc::new(Tenant::anonymous())) }
    }

    /// True where everybody may ask.
    pub fn is_open(&self) -> bool {
        self.anonymous.is_some()
    }

    /// Whose key it is. The cost is that of hashing the key, whoever it belongs to. A caller without a key, or
    /// with an empty one, is the anonymous tenant or nobody.
    pub fn find(&self, key: Option<&str>) -> Option<Arc<Tenant>> {
        let known = || self.tenants.get(&hash_key(key.filter(|key| !key.is_empty())?)).cloned();
        self.anonymous.clone().or_else(known)
    }

    /// Every tenant, in no particular order.
    pub fn tenants(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.tenants.values().chain(&self.anonymous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, key: &str) -> Tenant {
        Tenant { account: AccountId::new(name), key: Some(hash_key(key)) }
    }

    fn check<'k>(keys: &Keys, key: impl Into<Option<&'k str>>, expected: Option<&str>) {
        let key = key.into();
        assert_eq!(keys.find(key).map(|tenant| tenant.account.to_string()).as_deref(), expected, "{key:?}");
    }

    #[test]
    fn a_key_finds_its_tenant_and_no_other() {
        let keys = Keys::new(vec![tenant("research", "sk-a"), tenant("product", "sk-b")]).unwrap();
        check(&keys, "sk-a", Some("research"));
        check(&keys, "sk-b", Some("product"));
        check(&keys, "sk-", None);
        check(&keys, None, None);
        assert!(!keys.is_open());
    }

    #[test]
    fn a_caller_without_a_key_is_nobody_even_where_the_empty_text_was_hashed() {
        let keys = Keys::new(vec![tenant("careless", "")]).unwrap();
        check(&keys, None, None);
        check(&keys, "", None);
    }

    #[test]
    fn without_keys_everybody_is_the_anonymous_tenant() {
        let keys = Keys::new(Vec::new()).unwrap();
        assert!(keys.is_open());
        check(&keys, None, Some("anonymous"));
        check(&keys, "sk-whatever", Some("anonymous"));
        assert_eq!(keys.tenants().count(), 1);
    }

    #[test]
    fn two_tenants_share_neither_name_nor_key() {
        let twice = Keys::new(vec![tenant("a", "sk-a"), tenant("a", "sk-b")]).unwrap_err();
        assert_eq!(twice, KeysError::NameTwice(AccountId::new("a")));
        let twice = Keys::new(vec![tenant("a", "sk-a"), tenant("b", "sk-a")]).unwrap_err();
        assert_eq!(twice, KeysError::KeyTwice(AccountId::new("a"), AccountId::new("b")));
        let keyless = Keys::new(vec![Tenant::anonymous()]).unwrap_err();
        assert_eq!(keyless, KeysError::NoKey(AccountId::new("anonymous")));
    }
}
