//! The accounts of callers who come with tokens of an issuer, in place of keys. They are known from the first token on, and stand in
//! trees that no key has. Where a tree is full, one that was not used for an hour makes room for the next.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::units::{AccountId, Timestamp};

use super::{AccountTerms, DirectorySnapshot};

/// From when on an account that nobody used may be forgotten.
const IDLE: Duration = Duration::from_secs(3_600);
/// What stands for the last use of one that was.
const FORGOTTEN: i64 = i64::MIN;

/// An account that a token names, with what it may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAccount {
    /// What it may spend, where no admin stored something else for it.
    pub terms: AccountTerms,
    /// Which of two tokens of one account holds.
    pub order: TokenOrder,
}

/// Of two tokens of one account the terms of the later one hold: by the configuration that read it, then by when it was issued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenOrder {
    /// Counts up with each configuration.
    pub configuration: u64,
    /// When the issuer made the token, in seconds since 1970; 0 where it does not say.
    pub issued: u64,
}

/// Why a token gets no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenAccountError {
    /// A key has the account, which a token may not take.
    #[error("the account {0} belongs to a key: revoke that key, or give the issuer another account_prefix")]
    OfKey(AccountId),
    /// As many accounts came as the configuration allows, and all of them were used lately.
    #[error("{1} accounts below {0} came with tokens within an hour, as many as accounts_max allows")]
    Full(AccountId, usize),
}

/// When an account that came with a token was used last. Clones share it.
#[derive(Debug, Clone)]
pub struct TokenAccountUse(Arc<AtomicI64>);

impl TokenAccountUse {
    /// One that is used now.
    pub fn new(now: Timestamp) -> TokenAccountUse {
        TokenAccountUse(Arc::new(AtomicI64::new(now.0)))
    }

    /// It is used now. False if it was forgotten: then its token has to be let in again.
    #[must_use = "one that was forgotten may not spend"]
    pub fn touch(&self, now: Timestamp) -> bool {
        let later = |last: i64| (last != FORGOTTEN).then(|| last.max(now.0));
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, later).is_ok()
    }

    /// Forgets it, unless it was used lately.
    fn forget(&self, now: Timestamp) -> bool {
        let idle = |last: i64| (Timestamp(last) + IDLE <= now).then_some(FORGOTTEN);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, idle).is_ok()
    }
}

/// Every account that came with a token. What the directory knows at different moments shares it.
#[derive(Debug, Default)]
pub(super) struct TokenAccounts {
    trees: RwLock<HashMap<AccountId, TokenTree>>,
}

/// The accounts of one issuer.
#[derive(Debug, Clone, Default)]
struct TokenTree {
    accounts: HashMap<AccountId, KnownAccount>,
    /// All of them, with when it was last seen that each was in use; that moment rises from front to back.
    seen: VecDeque<(Timestamp, AccountId)>,
}

#[derive(Debug, Clone)]
struct KnownAccount {
    account: TokenAccount,
    usage: TokenAccountUse,
    /// False until the listener has been told of these terms: only then the account may spend by them.
    is_announced: bool,
}

impl TokenAccounts {
    pub(super) fn get(&self, account: &AccountId) -> Option<TokenAccount> {
        self.known(account).map(|known| known.account)
    }

    pub(super) fn terms(&self) -> Vec<AccountTerms> {
        let trees = self.read();
        let known = trees.values().flat_map(|tree| tree.accounts.values());
        known.map(|known| known.account.terms.clone()).collect()
    }

    /// Those of them that are below one of these trees.
    pub(super) fn within(&self, trees: &[AccountId]) -> TokenAccounts {
        let mut kept: HashMap<AccountId, TokenTree> = HashMap::new();
        for tree in self.read().values() {
            for (seen, account) in &tree.seen {
                let home = trees.iter().find(|home| home.contains(account));
                if let (Some(home), Some(known)) = (home, tree.accounts.get(account)) {
                    let kept = kept.entry(home.clone()).or_default();
                    kept.accounts.insert(account.clone(), known.clone());
                    kept.seen.push_back((*seen, account.clone()));
                }
            }
        }
        for tree in kept.values_mut() {
            tree.seen.make_contiguous().sort_by_key(|(seen, _)| *seen);
        }
        TokenAccounts { trees: RwLock::new(kept) }
    }

    fn known(&self, account: &AccountId) -> Option<KnownAccount> {
        let trees = self.read();
        let mut homes = account.lineage().filter_map(|path| trees.get(path));
        homes.find_map(|tree| tree.accounts.get(account).cloned())
    }

    /// Puts one in, in place of what it was; which one it took the place of, if its tree was full.
    fn insert(
        &self,
        tree: &AccountId,
        most: usize,
        wanted: TokenAccount,
        now: Timestamp,
    ) -> Result<(TokenAccountUse, Option<AccountId>), TokenAccountError> {
        let mut trees = self.write();
        let home = trees.entry(tree.clone()).or_default();
        let account = wanted.terms.account.clone();
        if let Some(known) = home.accounts.get_mut(&account) {
            (known.account, known.is_announced) = (wanted, false);
            // It is in the map, so it was not forgotten.
            let _ = known.usage.touch(now);
            return Ok((known.usage.clone(), None));
        }
        let forgotten = if home.accounts.len() < most {
            None
        } else {
            let full = || TokenAccountError::Full(tree.clone(), most);
            Some(home.forget_one(now).ok_or_else(full)?)
        };
        let usage = TokenAccountUse::new(now);
        home.seen.push_back((now, account.clone()));
        let known = KnownAccount { account: wanted, usage: usage.clone(), is_announced: false };
        home.accounts.insert(account, known);
        Ok((usage, forgotten))
    }

    fn mark_announced(&self, account: &AccountId) {
        let mut trees = self.write();
        let known = trees.values_mut().find_map(|tree| tree.accounts.get_mut(account));
        known.into_iter().for_each(|known| known.is_announced = true);
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<AccountId, TokenTree>> {
        // Every change is whole.
        self.trees.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<AccountId, TokenTree>> {
        self.trees.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenTree {
    /// Forgets one that was not used for long. Each is looked at once in that time, so that a new account costs little on average.
    fn forget_one(&mut self, now: Timestamp) -> Option<AccountId> {
        while self.seen.front().is_some_and(|(seen, _)| *seen + IDLE <= now) {
            let (_, account) = self.seen.pop_front()?;
            if self.accounts.get(&account).is_none_or(|known| known.usage.forget(now)) {
                self.accounts.remove(&account);
                return Some(account);
            }
            self.seen.push_back((now, account));
        }
        None
    }
}

impl DirectorySnapshot {
    /// The use of an account that may spend by these terms, or by those of a later token.
    pub(super) fn token_account(&self, wanted: &TokenAccount) -> Option<TokenAccountUse> {
        let known = self.tokens.known(&wanted.terms.account).filter(|known| known.is_announced)?;
        let TokenAccount { terms, order } = &known.account;
        let holds = *order > wanted.order || (*order == wanted.order && *terms == wanted.terms);
        holds.then_some(known.usage)
    }

    /// Lets the account in that a token names, which is below `tree`; at most so many are. Which one was forgotten for it.
    pub(super) fn insert_token_account(
        &self,
        tree: &AccountId,
        most: usize,
        wanted: TokenAccount,
        now: Timestamp,
    ) -> Result<(TokenAccountUse, Option<AccountId>), TokenAccountError> {
        let account = &wanted.terms.account;
        if self.index.key(account).is_some() || self.unrevoked().any(|record| record.account == *account) {
            return Err(TokenAccountError::OfKey(account.clone()));
        }
        self.tokens.insert(tree, most, wanted, now)
    }

    /// True if an account that came with a token may spend by the terms that it is known with.
    pub(super) fn is_token_announced(&self, account: &AccountId) -> bool {
        self.tokens.known(account).is_some_and(|known| known.is_announced)
    }

    /// The listener has been told of an account's terms.
    pub(super) fn mark_token_announced(&self, account: &AccountId) {
        self.tokens.mark_announced(account);
    }

    /// The tree of tokens' accounts that an account stands in, if any.
    pub(super) fn token_tree(&self, account: &AccountId) -> Option<&AccountId> {
        self.declared().token_trees.iter().find(|tree| tree.contains(account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> TokenAccount {
        let terms = AccountTerms::unlimited(AccountId::new(format!("staff/{name}")));
        TokenAccount { terms, order: TokenOrder::default() }
    }

    fn staff() -> AccountId {
        AccountId::new("staff")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000)
    }

    #[test]
    fn where_a_tree_is_full_the_longest_unused_makes_room_and_one_in_use_stays() {
        let accounts = TokenAccounts::default();
        let insert = |name: &str, seconds| accounts.insert(&staff(), 2, wanted(name), at(seconds));
        let (alice, _) = insert("alice", 0).unwrap();
        let (bob, _) = insert("bob", 1).unwrap();
        assert_eq!(insert("eve", 3_599).unwrap_err(), TokenAccountError::Full(staff(), 2));
        assert!(alice.touch(at(3_000)));
        let (_, forgotten) = insert("eve", 3_700).unwrap();
        assert_eq!(forgotten, Some(AccountId::new("staff/bob")));
        assert!(!bob.touch(at(3_701)) && alice.touch(at(3_701)), "a token of Bob's is let in anew");
        assert!(accounts.get(&AccountId::new("staff/bob")).is_none());
        assert!(insert("bob", 3_702).is_err(), "the others were used lately");
        assert_eq!(accounts.terms().len(), 2);
    }

    #[test]
    fn any_number_of_accounts_takes_bounded_room() {
        let accounts = TokenAccounts::default();
        let (most, mut seconds) = (10_000, 0);
        for number in 0..30_000 {
            // As many come in an hour as may be known.
            seconds += i64::from(number % 3 == 0) + i64::from(number % 50 == 0);
            let inserted = accounts.insert(&staff(), most, wanted(&number.to_string()), at(seconds));
            assert!(inserted.is_ok() || number >= 10_000);
        }
        let trees = accounts.read();
        let tree = &trees[&staff()];
        assert!(tree.accounts.len() <= most && tree.seen.len() == tree.accounts.len());
    }

    #[test]
    fn those_of_a_tree_that_stays_are_kept_with_their_use() {
        let accounts = TokenAccounts::default();
        let (alice, _) = accounts.insert(&staff(), 9, wanted("alice"), at(0)).unwrap();
        let kept = accounts.within(&[AccountId::new("other"), staff()]);
        let (_, forgotten) = kept.insert(&staff(), 1, wanted("bob"), at(4_000)).unwrap();
        assert_eq!(forgotten, Some(AccountId::new("staff/alice")));
        assert!(!alice.touch(at(4_001)));
        assert!(accounts.within(&[AccountId::new("other")]).terms().is_empty());
    }
}
