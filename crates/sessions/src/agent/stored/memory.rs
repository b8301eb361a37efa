//! A response store in memory, lost when the process ends: for gateways whose ledger is in memory, and for tests.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{ResponseChain, ResponseStore, ResponsesError, StoredResponse};

/// Responses in memory.
#[derive(Debug, Default)]
pub struct MemoryResponses {
    accounts: Mutex<HashMap<AccountId, AccountResponses>>,
    /// How many responses each write had.
    #[cfg(test)]
    pub(super) writes: Mutex<Vec<usize>>,
}

/// The responses of one account.
#[derive(Debug, Default)]
struct AccountResponses {
    records: HashMap<RequestId, StoredResponse>,
    /// All of them, the oldest first.
    ages: BTreeSet<(Timestamp, RequestId)>,
    bytes: u64,
}

impl MemoryResponses {
    fn accounts(&self) -> MutexGuard<'_, HashMap<AccountId, AccountResponses>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountResponses {
    /// Keeps a response, and lets the oldest others go until the account has at most so many bytes.
    fn keep(&mut self, response: &StoredResponse, bytes_max: u64) {
        let id = response.id;
        if !self.records.contains_key(&id) {
            self.bytes += size(response);
            self.ages.insert((response.at, id));
            self.records.insert(id, response.clone());
        }
        while self.bytes > bytes_max {
            let Some(oldest) = self.ages.iter().map(|(_, id)| *id).find(|oldest| *oldest != id) else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn find(&self, id: RequestId, since: Timestamp) -> Option<&StoredResponse> {
        self.records.get(&id).filter(|record| record.at >= since)
    }

    fn remove(&mut self, id: RequestId) -> bool {
        let Some(record) = self.records.remove(&id) else { return false };
        self.ages.remove(&(record.at, id));
        self.bytes -= size(&record);
        true
    }

    /// Those of that key, or all where none is named.
    fn remove_of(&mut self, key: Option<KeyId>) -> usize {
        let of_key = self.records.values().filter(|record| key.is_none() || record.key == key);
        let ids: Vec<RequestId> = of_key.map(|record| record.id).collect();
        ids.iter().filter(|id| self.remove(**id)).count()
    }
}

fn size(response: &StoredResponse) -> u64 {
    u64::try_from(response.size()).unwrap_or(u64::MAX)
}

impl ResponseStore for MemoryResponses {
    fn keep<'a>(
        &'a self,
        responses: &'a [StoredResponse],
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>> {
        async move {
            #[cfg(test)]
            self.writes.lock().unwrap_or_else(PoisonError::into_inner).push(responses.len());
            let mut accounts = self.accounts();
            for response in responses {
                accounts.entry(response.account.clone()).or_default().keep(response, account_max);
            }
            Ok(())
        }
        .boxed()
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
        async move {
            let accounts = self.accounts();
            Ok(accounts.get(account).and_then(|own| own.find(id, since)).cloned())
        }
        .boxed()
    }

    fn chain<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>> {
        async move {
            let accounts = self.accounts();
            let Some(own) = accounts.get(account) else { return Ok(None) };
            let (mut links, mut next, mut bytes) = (Vec::new(), Some(id), 0);
            while let Some(link) = next.and_then(|id| own.find(id, since)) {
                (next, bytes) = (link.previous, bytes + size(link));
                links.push(link.clone());
                if bytes > bytes_max {
                    break;
                }
            }
            Ok((!links.is_empty()).then_some(ResponseChain { responses: links }))
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
    ) -> BoxFuture<'a, Result<bool, ResponsesError>> {
        async move { Ok(self.accounts().get_mut(account).is_some_and(|own| own.remove(id))) }.boxed()
    }

    fn delete_of<'a>(
        &'a self,
        account: &'a AccountId,
        key: Option<KeyId>,
    ) -> BoxFuture<'a, Result<u64, ResponsesError>> {
        async move {
            let removed = self.accounts().get_mut(account).map_or(0, |own| own.remove_of(key));
            Ok(u64::try_from(removed).unwrap_or(u64::MAX))
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        async move {
            let mut accounts = self.accounts();
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let old = accounts.iter().flat_map(|(account, own)| {
                let old = own.ages.iter().take_while(|(at, _)| *at < before).take(most);
                old.map(|(at, id)| (*at, *id, account.clone()))
            });
            let mut old: Vec<_> = old.collect();
            old.sort_unstable();
            old.truncate(most);
            for (_, id, account) in &old {
                accounts.get_mut(account).map(|own| own.remove(*id));
            }
            accounts.retain(|_, own| !own.records.is_empty());
            Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }
}
