//! Keys and accounts that a text declares: the configuration, or an import in its form.

use std::collections::HashMap;

use crate::units::AccountId;

use super::{AccountTerms, KeyHash, KeyId, Tenant};

/// What the configuration, or a text like it, says of keys and accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredTenants {
    /// Keys.
    pub tenants: Vec<Tenant>,
    /// What accounts may spend, those of the keys included.
    pub terms: Vec<AccountTerms>,
    /// The trees whose accounts belong to callers with tokens, and to no key.
    pub token_trees: Vec<AccountId>,
}

/// The same, with the ways to find something in it.
#[derive(Debug, Default)]
pub(super) struct DeclaredIndex {
    pub(super) declared: DeclaredTenants,
    by_account: HashMap<AccountId, usize>,
    by_secret: HashMap<KeyHash, usize>,
    by_id: HashMap<KeyId, usize>,
    terms: HashMap<AccountId, usize>,
}

impl DeclaredIndex {
    pub(super) fn new(declared: DeclaredTenants) -> DeclaredIndex {
        let mut index = DeclaredIndex::default();
        for (place, tenant) in declared.tenants.iter().enumerate() {
            index.by_account.insert(tenant.account.clone(), place);
            index.by_id.insert(KeyId::of_declared(&tenant.account), place);
            let secrets = [tenant.key, tenant.second].into_iter().flatten();
            index.by_secret.extend(secrets.map(|hash| (hash, place)));
        }
        let terms = declared.terms.iter().enumerate();
        index.terms = terms.map(|(place, terms)| (terms.account.clone(), place)).collect();
        DeclaredIndex { declared, ..index }
    }

    /// The key of that account.
    pub(super) fn key(&self, account: &AccountId) -> Option<&Tenant> {
        self.declared.tenants.get(*self.by_account.get(account)?)
    }

    /// The key with that secret.
    pub(super) fn with_secret(&self, hash: KeyHash) -> Option<&Tenant> {
        self.declared.tenants.get(*self.by_secret.get(&hash)?)
    }

    /// The key of that id.
    pub(super) fn of_id(&self, id: KeyId) -> Option<&Tenant> {
        self.declared.tenants.get(*self.by_id.get(&id)?)
    }

    /// What the account may spend.
    pub(super) fn terms(&self, account: &AccountId) -> Option<&AccountTerms> {
        self.declared.terms.get(*self.terms.get(account)?)
    }
}
