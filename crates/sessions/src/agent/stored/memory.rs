//! A response store in memory, lost when the process ends: for gateways whose ledger is in memory, and for tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{ResponseChain, ResponseStore, ResponsesError, StoredResponse};

type ResponseTable = BTreeMap<(AccountId, RequestId), StoredResponse>;

/// Responses in memory.
#[derive(Debug, Default)]
pub struct MemoryResponses {
    records: Mutex<ResponseTable>,
}

impl MemoryResponses {
    fn records(&self) -> MutexGuard<'_, ResponseTable> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(
    records: &ResponseTable,
    account: &AccountId,
    id: RequestId,
    since: Timestamp,
) -> Option<StoredResponse> {
    records.get(&(account.clone(), id)).filter(|record| record.at >= since).cloned()
}

/// Removes the account's oldest responses, but not the new one, until the account keeps to its bound.
fn make_room(records: &mut ResponseTable, kept: &StoredResponse, most: u64) {
    let of_account = |records: &ResponseTable| -> Vec<(Timestamp, RequestId, usize)> {
        let own = records.values().filter(|record| record.account == kept.account);
        own.map(|record| (record.at, record.id, record.size())).collect()
    };
    let mut own = of_account(records);
    own.sort_unstable();
    let mut all: usize = own.iter().map(|(.., size)| size).sum();
    for (_, id, size) in own.into_iter().filter(|(_, id, _)| *id != kept.id) {
        if u64::try_from(all).is_ok_and(|all| all <= most) {
            return;
        }
        records.remove(&(kept.account.clone(), id));
        all -= size;
    }
}

impl ResponseStore for MemoryResponses {
    fn keep<'a>(
        &'a self,
        response: &'a StoredResponse,
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>> {
        async move {
            let mut records = self.records();
            records.entry((response.account.clone(), response.id)).or_insert_with(|| response.clone());
            make_room(&mut records, response, account_max);
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
        async move { Ok(find(&self.records(), account, id, since)) }.boxed()
    }

    fn chain<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>> {
        async move {
            let records = self.records();
            let (mut links, mut next, mut bytes) = (Vec::new(), Some(id), 0);
            while let Some(link) = next.and_then(|id| find(&records, account, id, since)) {
                (next, bytes) = (link.previous, bytes + link.size());
                links.push(link);
                if u64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max) {
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
        async move { Ok(self.records().remove(&(account.clone(), id)).is_some()) }.boxed()
    }

    fn delete_of<'a>(
        &'a self,
        account: &'a AccountId,
        key: Option<KeyId>,
    ) -> BoxFuture<'a, Result<u64, ResponsesError>> {
        async move {
            let mut records = self.records();
            let before = records.len();
            records.retain(|_, record| record.account != *account || (key.is_some() && record.key != key));
            Ok(u64::try_from(before - records.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        async move {
            let mut records = self.records();
            let old = records.iter().filter(|(_, record)| record.at < before);
            let mut old: Vec<_> = old.map(|(key, record)| (record.at, key.clone())).collect();
            old.sort();
            old.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            old.iter().for_each(|(_, key)| drop(records.remove(key)));
            Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }
}
