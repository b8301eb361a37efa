//! Turns at something that few can do at once: each account one at a time, so that another's first does not wait behind its crowd.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::units::AccountId;

/// From so many accounts on, and each time that there are twice as many, those without a turn are forgotten.
const ACCOUNTS_MIN: usize = 64;

/// Who waits for a turn: accounts, or who else each has one turn at a time. Clones share it.
#[derive(Debug, Clone)]
pub struct AccountTurns<K = AccountId> {
    accounts: Arc<Mutex<TurnTable<K>>>,
    all: Arc<Semaphore>,
}

/// Those that have a turn or wait for one, and some that did.
#[derive(Debug)]
struct TurnTable<K> {
    own: HashMap<K, Arc<Semaphore>>,
    /// How many there may be before those without a turn are forgotten.
    room: usize,
}

/// An account's turn. It ends when this is dropped, for the account and for all when its part is.
#[derive(Debug)]
pub struct Turn {
    /// While it is held, the same account has no other turn.
    pub own: Option<OwnedSemaphorePermit>,
    /// While it is held, one of the turns of all is taken.
    pub of_all: Option<OwnedSemaphorePermit>,
}

impl<K: Eq + Hash + Clone> AccountTurns<K> {
    /// So many accounts have a turn at once.
    pub fn new(at_once: usize) -> AccountTurns<K> {
        let accounts = TurnTable { own: HashMap::new(), room: ACCOUNTS_MIN };
        AccountTurns {
            accounts: Arc::new(Mutex::new(accounts)),
            all: Arc::new(Semaphore::new(at_once.max(1))),
        }
    }

    /// Waits for a turn of this account: in the order of arrival among its own, and among the first of all accounts.
    pub async fn begin(&self, account: &K) -> Turn {
        // Neither is ever closed.
        let own = self.account(account).acquire_owned().await.ok();
        let of_all = self.all.clone().acquire_owned().await.ok();
        Turn { own, of_all }
    }

    fn account(&self, account: &K) -> Arc<Semaphore> {
        // An entry is whole once it is there.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.own.get(account) {
            return known.clone();
        }
        accounts.make_room();
        accounts.own.entry(account.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}

impl<K: Eq + Hash> TurnTable<K> {
    fn make_room(&mut self) {
        if self.own.len() < self.room {
            return;
        }
        // A turn keeps its semaphore, and so does who waits for one.
        self.own.retain(|_, own| Arc::strong_count(own) > 1);
        self.room = (2 * self.own.len()).max(ACCOUNTS_MIN);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn accounts_take_turns_however_much_one_of_them_has_to_do() {
        let (turns, greedy, other) = (AccountTurns::new(1), AccountId::new("a"), AccountId::new("b"));
        let first = turns.begin(&greedy).await;
        let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(turns.begin(&greedy))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        let mut theirs = Box::pin(turns.begin(&other));
        assert!((&mut theirs).now_or_never().is_none(), "there is one turn at a time");
        drop(first);
        assert!(waiting[0].as_mut().now_or_never().is_none(), "its own next is behind the other's first");
        assert!(theirs.now_or_never().is_some());
    }
    #[tokio::test]
    async fn accounts_without_a_turn_are_forgotten() {
        let (turns, held) = (AccountTurns::new(2), AccountId::new("held"));
        let _turn = turns.begin(&held).await;
        for number in 0..10 * ACCOUNTS_MIN {
            drop(turns.begin(&AccountId::new(format!("a{number}"))).await);
        }
        assert!(turns.accounts.lock().unwrap().own.len() <= ACCOUNTS_MIN);
        assert!(turns.begin(&held).now_or_never().is_none(), "it still has its turn");
    }

    #[tokio::test]
    async fn an_account_may_hold_its_own_turn_longer_than_that_of_all() {
        let turns = AccountTurns::new(1);
        let Turn { own, of_all } = turns.begin(&Some("a")).await;
        assert!(turns.begin(&None).now_or_never().is_none(), "one at once");
        drop(of_all);
        assert!(turns.begin(&Some("a")).now_or_never().is_none());
        assert!(turns.begin(&None).now_or_never().is_some());
        drop(own);
        assert!(turns.begin(&Some("a")).now_or_never().is_some());
    }
}
