//! Tokens that were checked, by their hashes. Bounded: what was not used for long is forgotten first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stint_types::tenant::{KeyHash, Tenant, TokenAccountUse};
use stint_types::units::Timestamp;

/// How many tokens a generation has. Two are kept.
const GENERATION: usize = 8_192;

/// A token that was found to be right.
#[derive(Debug, Clone)]
pub(super) struct CheckedToken {
    pub(super) tenant: Arc<Tenant>,
    /// From when on it is refused.
    pub(super) until: Timestamp,
    /// Which of the issuers it is of.
    pub(super) issuer: usize,
    /// The issuer's keys that it was checked with.
    pub(super) keys: u64,
    /// When its account was used last.
    pub(super) usage: TokenAccountUse,
}

/// What was checked lately.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    generations: Mutex<Generations>,
}

/// Once the young are full they are the old, and those are forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<KeyHash, CheckedToken>,
    old: HashMap<KeyHash, CheckedToken>,
}

impl TokenCache {
    /// A token that is not expired.
    pub(super) fn find(&self, token: KeyHash, now: Timestamp) -> Option<CheckedToken> {
        let mut generations = self.lock();
        if let Some(found) = generations.young.get(&token) {
            return (found.until > now).then(|| found.clone());
        }
        let found = generations.old.remove(&token).filter(|found| found.until > now)?;
        generations.insert(token, found.clone());
        Some(found)
    }

    pub(super) fn insert(&self, token: KeyHash, checked: CheckedToken) {
        self.lock().insert(token, checked);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // What is in it is whole at any moment.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn insert(&mut self, token: KeyHash, checked: CheckedToken) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token, checked);
    }
}

#[cfg(test)]
mod tests {
    use stint_types::tenant::hash_key;

    use super::*;

    fn checked(until: i64) -> CheckedToken {
        let usage = TokenAccountUse::new(Timestamp(0));
        CheckedToken {
            tenant: Arc::new(Tenant::anonymous()),
            until: Timestamp(until),
            issuer: 0,
            keys: 1,
            usage,
        }
    }

    #[test]
    fn a_token_is_remembered_until_it_ends() {
        let cache = TokenCache::default();
        cache.insert(hash_key("t"), checked(1_000));
        assert!(cache.find(hash_key("t"), Timestamp(999)).is_some());
        assert!(cache.find(hash_key("t"), Timestamp(1_000)).is_none());
        assert!(cache.find(hash_key("u"), Timestamp(0)).is_none());
    }

    #[test]
    fn any_number_of_tokens_takes_bounded_room_and_those_in_use_stay() {
        let cache = TokenCache::default();
        cache.insert(hash_key("in use"), checked(1));
        for number in 0..4 * GENERATION {
            cache.insert(hash_key(&number.to_string()), checked(1));
            assert!(cache.find(hash_key("in use"), Timestamp(0)).is_some());
        }
        let generations = cache.lock();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
    }
}
