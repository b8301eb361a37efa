//! Turns at something that few can do at once: each account one at a time, so that another's first does not wait behind its crowd.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::units::AccountId;

/// Who waits for a turn. Clones share it.
#[derive(Debug, Clone)]
pub struct AccountTurns {
    accounts: Arc<Mutex<HashMap<AccountId, Arc<Semaphore>>>>,
    all: Arc<Semaphore>,
}

/// An account's turn. It ends when this is dropped.
#[derive(Debug)]
pub struct Turn {
    _own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl AccountTurns {
    /// So many accounts have a turn at once.
    pub fn new(at_once: usize) -> AccountTurns {
        AccountTurns { accounts: Arc::default(), all: Arc::new(Semaphore::new(at_once.max(1))) }
    }

    /// Waits for a turn of this account: in the order of arrival among its own, and among the first of all accounts.
    pub async fn begin(&self, account: &AccountId) -> Turn {
        // Neither is ever closed.
        let own = self.account(account).acquire_owned().await.ok();
        let of_all = self.all.clone().acquire_owned().await.ok();
        Turn { _own: own, _of_all: of_all }
    }

    fn account(&self, account: &AccountId) -> Arc<Semaphore> {
        // An entry is whole once it is there.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.get(account) {
            return known.clone();
        }
        accounts.entry(account.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
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
}
