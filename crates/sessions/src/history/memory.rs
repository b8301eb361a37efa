//! Stories that are gone when the process ends: for tests, and for trying things out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::catalog::Verdict;
use stint_types::units::{RequestId, Timestamp};

use super::record::set_verdict;
use super::{HistoryStore, HistoryStoreError, ReplicaId, ReplicaState, RequestRecord, WritableRecord};

/// So many stories are kept, whatever else is allowed: each takes a few kilobytes.
const STORIES_MAX: usize = 20_000;

/// The latest stories, in memory.
#[derive(Debug, Default)]
pub struct MemoryHistoryStore {
    tables: Mutex<HistoryTables>,
}

#[derive(Debug, Default)]
struct HistoryTables {
    records: BTreeMap<RequestId, Arc<RequestRecord>>,
    /// The records by their age.
    decided: BTreeSet<(Timestamp, RequestId)>,
    /// Of requests of which something was said.
    verdicts: BTreeMap<RequestId, Vec<Verdict>>,
    /// When something was said of them.
    said: BTreeSet<(Timestamp, RequestId)>,
    states: BTreeMap<ReplicaId, ReplicaState>,
}

impl MemoryHistoryStore {
    fn tables(&self) -> MutexGuard<'_, HistoryTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryTables {
    fn insert(&mut self, story: &Arc<RequestRecord>) {
        let id = story.decision.id;
        if self.records.contains_key(&id) {
            return;
        }
        self.records.insert(id, story.clone());
        self.decided.insert((story.decision.at, id));
        for verdict in &story.verdicts {
            let known = self.verdicts.get(&id).map_or(&[][..], Vec::as_slice);
            if known.iter().all(|known| known.source != verdict.source) {
                self.set_verdict(verdict.clone());
            }
        }
        while self.records.len() > STORIES_MAX {
            let Some((_, oldest)) = self.decided.pop_first() else { break };
            self.records.remove(&oldest);
            self.verdicts.remove(&oldest);
        }
    }

    fn set_verdict(&mut self, verdict: Verdict) -> Option<Verdict> {
        self.said.insert((verdict.at, verdict.id));
        set_verdict(self.verdicts.entry(verdict.id).or_default(), verdict)
    }

    fn retention_cutoff(&self, most: usize) -> Option<Timestamp> {
        self.decided.iter().rev().nth(most).map(|(at, _)| *at)
    }

    fn purge(&mut self, before: Timestamp, most: usize) -> usize {
        let old = self.decided.iter().take_while(|(at, _)| *at < before).take(most);
        let old: Vec<(Timestamp, RequestId)> = old.copied().collect();
        for entry in &old {
            self.decided.remove(entry);
            self.records.remove(&entry.1);
        }
        while self.said.first().is_some_and(|(at, _)| *at < before) {
            let Some((_, id)) = self.said.pop_first() else { break };
            if let Some(verdicts) = self.verdicts.get_mut(&id) {
                verdicts.retain(|verdict| verdict.at >= before);
                if verdicts.is_empty() {
                    self.verdicts.remove(&id);
                }
            }
        }
        old.len()
    }
}

impl HistoryStore for MemoryHistoryStore {
    fn insert<'a>(
        &'a self,
        stories: &'a [Arc<WritableRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        async move {
            let mut kept = self.tables();
            stories.iter().for_each(|story| kept.insert(story.record()));
            Ok(())
        }
        .boxed()
    }

    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>> {
        async move {
            let kept = self.tables();
            let story = kept.records.get(&id).filter(|story| story.decision.at >= since);
            let verdicts = kept.verdicts.get(&id).cloned().unwrap_or_default();
            Ok(story.map(|story| RequestRecord { verdicts, ..RequestRecord::clone(story) }))
        }
        .boxed()
    }

    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>> {
        async move { Ok(self.tables().set_verdict(verdict.clone())) }.boxed()
    }

    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>> {
        async move { Ok(self.tables().retention_cutoff(usize::try_from(most).unwrap_or(usize::MAX))) }.boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>> {
        async move {
            let purged = self.tables().purge(before, usize::try_from(most).unwrap_or(usize::MAX));
            Ok(u64::try_from(purged).unwrap_or(u64::MAX))
        }
        .boxed()
    }

    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>> {
        async move { Ok(self.tables().states.values().cloned().collect()) }.boxed()
    }

    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        in_place_of: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>> {
        async move {
            let learned = &mut self.tables().states;
            let is_there =
                |gone: &ReplicaState| learned.get(&gone.replica).is_some_and(|known| known.at == gone.at);
            if !in_place_of.iter().all(is_there) {
                return Ok(false);
            }
            for gone in in_place_of {
                learned.remove(&gone.replica);
            }
            learned.insert(own.replica.clone(), own.clone());
            Ok(true)
        }
        .boxed()
    }

    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        async move {
            self.tables().states.remove(replica);
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn stories_in_memory_conform() {
        crate::history::conformance::conforms(&super::MemoryHistoryStore::default()).await;
    }
}
