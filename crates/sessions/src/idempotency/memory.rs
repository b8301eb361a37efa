//! Records that are gone when the process ends: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::units::Timestamp;

use super::{
    IdempotencyChange, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, IdempotencyStore,
    IdempotencyStoreError,
};

/// Records in memory.
#[derive(Debug, Default)]
pub struct MemoryIdempotencyStore {
    records: Mutex<BTreeMap<IdempotencyKey, IdempotencyRecord>>,
}

type IdempotencyTable = BTreeMap<IdempotencyKey, IdempotencyRecord>;

impl MemoryIdempotencyStore {
    fn records(&self) -> MutexGuard<'_, IdempotencyTable> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply(records: &mut IdempotencyTable, change: &IdempotencyChange) -> bool {
    let held = records.get_mut(change.key());
    match (change, held) {
        (IdempotencyChange::Begin { record, expired_before, .. }, Some(held)) => {
            let is_free = held.begun < *expired_before || held.request == record.request;
            if is_free {
                held.clone_from(record);
            }
            is_free
        }
        (IdempotencyChange::Begin { key, record, .. }, None) => {
            records.insert(key.clone(), record.clone());
            true
        }
        (IdempotencyChange::End { request, end, .. }, Some(held))
            if held.request == *request && held.end.is_none() =>
        {
            held.end = Some(end.clone());
            true
        }
        (IdempotencyChange::Forget { key, request }, Some(held))
            if held.request == *request && held.end.is_none() =>
        {
            records.remove(key);
            true
        }
        (IdempotencyChange::End { .. } | IdempotencyChange::Forget { .. }, _) => false,
    }
}

impl IdempotencyStore for MemoryIdempotencyStore {
    fn find<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<IdempotencyRecord>, IdempotencyStoreError>> {
        async move { Ok(self.records().get(key).filter(|record| record.begun >= since).cloned()) }.boxed()
    }

    fn write<'a>(
        &'a self,
        changes: &'a [IdempotencyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, IdempotencyStoreError>> {
        async move {
            let mut records = self.records();
            Ok(changes.iter().map(|change| apply(&mut records, change)).collect())
        }
        .boxed()
    }

    fn interrupt(&self, _: Timestamp) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        async {
            let mut count = 0;
            for record in self.records().values_mut().filter(|record| record.end.is_none()) {
                record.end = Some(IdempotencyOutcome::Interrupted);
                count += 1;
            }
            Ok(count)
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, IdempotencyStoreError>> {
        async move {
            let mut records = self.records();
            let old = records.iter().filter(|(_, record)| record.begun < before);
            let mut old: Vec<_> = old.map(|(key, record)| (record.begun, key.clone())).collect();
            old.sort();
            old.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            old.iter().for_each(|(_, key)| drop(records.remove(key)));
            Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }
}
