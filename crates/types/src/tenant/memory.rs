//! A key store in memory that is lost when the process ends: for tests, and for trying things out.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{KeyStore, KeyStoreChange, KeyStoreError, KeyStoreState, StoreVersion};

/// Keys in memory.
#[derive(Debug, Default)]
pub struct MemoryKeyStore {
    stored: Mutex<KeyStoreState>,
}

impl MemoryKeyStore {
    fn read<T>(&self, read: impl FnOnce(&KeyStoreState) -> T) -> T {
        read(&self.stored.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, seen: StoreVersion, changes: &[KeyStoreChange]) -> Result<(), KeyStoreError> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.version != seen {
            return Err(KeyStoreError::Conflict);
        }
        let mut next = stored.clone();
        next.apply(changes);
        check(&next)?;
        *stored = next;
        Ok(())
    }
}

impl KeyStore for MemoryKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        async { Ok(self.read(KeyStoreState::clone)) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        async { Ok(self.read(|stored| stored.version)) }.boxed()
    }

    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        async move { self.change(seen, changes) }.boxed()
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
