//! A key store in memory that is lost when the process ends: for tests, and for trying things out.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{
    AuditEntry, AuditHash, AuditRecord, KeyStore, KeyStoreChange, KeyStoreError, KeyStoreState, StoreVersion,
    chained,
};

/// Keys in memory.
#[derive(Debug, Default)]
pub struct MemoryKeyStore {
    stored: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    keys: KeyStoreState,
    log: Vec<AuditRecord>,
}

impl MemoryState {
    fn append(&mut self, entries: &[AuditEntry]) {
        let (number, hash) =
            self.log.last().map_or((0, AuditHash::default()), |last| (last.number, last.hash));
        self.log.extend(chained(number, hash, entries));
    }
}

impl MemoryKeyStore {
    fn read<T>(&self, read: impl FnOnce(&MemoryState) -> T) -> T {
        read(&self.stored.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(
        &self,
        seen: StoreVersion,
        changes: &[KeyStoreChange],
        entries: &[AuditEntry],
    ) -> Result<(), KeyStoreError> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.keys.version != seen {
            return Err(KeyStoreError::Conflict);
        }
        let mut next = stored.keys.clone();
        next.apply(changes);
        check(&next)?;
        stored.keys = next;
        stored.append(entries);
        Ok(())
    }
}

impl KeyStore for MemoryKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        async { Ok(self.read(|stored| stored.keys.clone())) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        async { Ok(self.read(|stored| stored.keys.version)) }.boxed()
    }

    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        async move { self.change(seen, changes, entries) }.boxed()
    }

    fn append_audit<'a>(&'a self, entries: &'a [AuditEntry]) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).append(entries);
        async { Ok(()) }.boxed()
    }

    fn read_audit(
        &self,
        before: Option<u64>,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<AuditRecord>, KeyStoreError>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_before = |record: &&AuditRecord| before.is_none_or(|before| record.number < before);
        let found =
            self.read(|stored| stored.log.iter().rev().filter(is_before).take(most).cloned().collect());
        async { Ok(found) }.boxed()
    }
}

fn check(stored: &KeyStoreState) -> Result<(), KeyStoreError> {
    let (mut accounts, mut hashes) = (HashSet::new(), HashSet::new());
    for key in stored.keys.values() {
        if key.revoked.is_none() && !accounts.insert(&key.account) {
            return Err(KeyStoreError::failed("two keys of one account", key.account.as_str()));
        }
        if !key.hashes().all(|hash| hashes.insert(hash)) {
            return Err(KeyStoreError::failed("two keys with one secret", key.account.as_str()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_store_in_memory_conforms() {
        super::super::conformance::conforms(&MemoryKeyStore::default()).await;
    }
}
